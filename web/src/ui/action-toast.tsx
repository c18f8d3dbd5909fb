// Notes in a corner of the page about tasks that the user started, with their progress.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import type { Counts, Task } from "../api-types.ts";
import { listen } from "../live/stream.ts";
import { href } from "../router.ts";
import { t, tOf } from "../words.ts";
import { Button } from "./kit.tsx";

interface Followed {
  id: string;
  action: string;
  counts: Counts;
  final: boolean;
}

const followed = signal<Followed[]>([]);
const most = 4;
const stay = 8000; // how long a task that went well is shown after its end

/** Shows the progress of a task until it is done. */
export function followTask(id: string, action: string, targets: number): void {
  const counts = { targets, done: 0, noted: 0, failed: 0, running: targets };
  followed.value = [...followed.value.filter((f) => f.id !== id), { id, action, counts, final: false }].slice(-most);
  void ask(id);
}

const drop = (id: string) => { followed.value = followed.value.filter((f) => f.id !== id); };

function update(id: string, counts: Counts, final: boolean): void {
  const old = followed.value.find((f) => f.id === id);
  if (!old || old.final) return;
  followed.value = followed.value.map((f) => (f.id === id ? { ...f, counts, final } : f));
  if (final && counts.failed === 0) setTimeout(() => drop(id), stay);
}

/** Asks for a task that the stream may not have said anything about. */
async function ask(id: string): Promise<void> {
  while (followed.value.some((f) => f.id === id && !f.final)) {
    try {
      const task = await get<Task>(`/tasks/${encodeURIComponent(id)}`, { show: "none", wait: "10s" });
      update(id, task.counts, task.final);
    } catch {
      await new Promise((go) => setTimeout(go, 3000));
    }
  }
}

export function Toasts() {
  useEffect(() => listen("tasks", (tasks) => { for (const s of tasks) update(s.task_id, s.counts, s.final); }), []);
  return (
    <div class="toasts" role="status">
      {followed.value.map((f) => <Toast key={f.id} of={f} />)}
    </div>
  );
}

function Toast({ of }: { of: Followed }) {
  const { targets, done, failed } = of.counts;
  const text = !of.final ? t("act.toast.running", { done: done + failed, n: targets })
    : failed ? t("act.toast.failed", { failed, n: targets }) : t("act.toast.done", { n: targets });
  return (
    <div class={`toast ${of.final && failed ? "toast-failed" : ""}`}>
      <div class="row">
        <strong>{tOf("action.", of.action)}</strong> <span>{text}</span>
        <Button kind="quiet" class="toast-close" aria-label={t("close")} onClick={() => drop(of.id)}>✕</Button>
      </div>
      <progress max={targets} value={done + failed} aria-label={text} />
      <a href={href(`/tasks/${encodeURIComponent(of.id)}`)}>{t("act.toast.link")}</a>
    </div>
  );
}
