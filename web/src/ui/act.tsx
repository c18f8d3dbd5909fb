// Dialogs that do something on the server: they ask first, say what went wrong, and what waits for a second person.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Failure } from "../api.ts";
import type { Request } from "../api-types.ts";
import { href } from "../router.ts";
import { t } from "../words.ts";
import { Button, Command, Dialog, Moment, Problem } from "./kit.tsx";

/** The request that an answer says the act waits as; undefined if the act is done. */
export function heldBy(answer: unknown): Request | undefined {
  const request = (answer as { request?: Request } | null | undefined)?.request;
  return typeof request?.id === "number" && typeof request.digest === "string" ? request : undefined;
}

interface ActProps {
  title: string;
  label: string; // of the button that does it
  danger?: boolean;
  wide?: boolean;
  ready?: boolean; // false: something is missing in the form
  run: () => Promise<unknown>;
  onClose: () => void;
  onCancel?: () => void; // in place of onClose, where the dialog goes on after it is done
  onDone?: (answer: unknown) => void;
  children?: ComponentChildren;
}

/** A dialog with a form or a question, and the button that does it. It stays open when the server refuses. */
export function Act({ title, label, danger, wide, ready = true, run, onClose, onCancel, onDone, children }: ActProps) {
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const [held, setHeld] = useState<Request>();

  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    setFailure(undefined);
    try {
      const answer = await run();
      const request = heldBy(answer);
      if (!request) onClose();
      else if (!onCancel) setHeld(request);
      onDone?.(answer);
    } catch (err) {
      setFailure(err instanceof Failure ? err : new Failure(0, { message: String(err) }));
    }
    setBusy(false);
  };

  if (held) return <Dialog title={title} onClose={onClose}><HeldNote request={held} /><footer class="dialog-foot"><Button onClick={onClose}>{t("close")}</Button></footer></Dialog>;
  return (
    <Dialog title={title} onClose={onCancel ?? onClose} wide={wide}>
      <form class="stack" onSubmit={(e) => { void submit(e); }}>
        {children}
        {failure && <Problem of={failure} title={t("act.failed")} />}
        <footer class="dialog-foot">
          <Button onClick={onCancel ?? onClose}>{t("cancel")}</Button>
          <Button type="submit" kind={danger ? "danger" : "main"} disabled={busy || !ready}>{label}</Button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Says that an act waits for a second person. */
export function HeldNote({ request }: { request: Request }) {
  return (
    <div class="stack" role="status">
      <p><strong>{t("held.title", { id: String(request.id) })}</strong></p>
      <p>{t("held.text")} <Moment at={request.expires} /></p>
      <p><a href={href("/requests")}>{t("held.link")}</a></p>
    </div>
  );
}

/** A secret that the server shows once, with a button to copy it. */
export function Once({ label, value, note }: { label: string; value: string; note?: string }) {
  return (
    <div class="once">
      <p><strong>{label}</strong></p>
      <Command text={value} />
      <p class="hint">{note ?? t("once.note")}</p>
    </div>
  );
}

/** A table that scrolls sideways on a narrow screen, also by keyboard. */
export function Scroll({ label, children, class: name }: { label: string; children: ComponentChildren; class?: string }) {
  return <div class={`scroll scroll-table ${name ?? ""}`} role="region" aria-label={label} tabIndex={0}>{children}</div>;
}
