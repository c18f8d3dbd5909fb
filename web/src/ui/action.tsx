// Actions on processes, for every page: openAction shows what an action would do, asks for confirmation, runs it, and
// follows its task. The dialog is loaded when it is first needed.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OperationRequest } from "../api-types.ts";
import { Toasts } from "./action-toast.tsx";

/** The actions that a page may offer. */
export type ActionName = "start" | "stop" | "restart" | "reload" | "kill" | "manage" | "unmanage" | "unregister";

/** Which processes an action is about, as the API has it. */
export type Selection = Pick<OperationRequest,
  "namespace" | "namespaces" | "names" | "hosts" | "all" | "biz" | "env" | "sets" | "modules" | "expression" | "processes">;

export interface Asked {
  action: ActionName;
  selection: Selection;
  onStarted?: (task: string) => void; // called with the id of the task
}

/** What the dialog is about; null: it is closed. */
export const asked = signal<Asked | null>(null);

/** Opens the dialog. */
export function openAction(what: Asked): void {
  asked.value = what;
}

/** The selection of one process, on one host or on all. */
export function oneProcess(namespace: string, name: string, agent?: string): Selection {
  return agent ? { processes: [{ namespace, name, agents: [agent] }] } : { namespace, names: [name], all: true };
}

/** The dialog and the notes about running tasks; the frame of the page has one. */
export function Actions() {
  const [Dialog, setDialog] = useState<ComponentType<{ of: Asked; onClose: () => void }>>();
  const open = asked.value;
  useEffect(() => {
    if (open && !Dialog) void import("./action-dialog.tsx").then((m) => setDialog(() => m.ActionDialog));
  }, [open]);
  return (
    <>
      {open && Dialog && <Dialog of={open} onClose={() => { asked.value = null; }} />}
      <Toasts />
    </>
  );
}
