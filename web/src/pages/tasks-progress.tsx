// The progress of a task in a bar and in words.
import type { Counts } from "../api-types.ts";
import { t } from "../words.ts";

export function Progress({ counts }: { counts: Counts }) {
  const percent = (n: number) => `${counts.targets ? (n * 100) / counts.targets : 0}%`;
  return (
    <div class="task-progress">
      <div class="bar task-bar" aria-hidden="true">
        <div class="task-bar-done" style={{ width: percent(counts.done) }} />
        <div class="task-bar-failed" style={{ width: percent(counts.failed) }} />
      </div>
      <span class={counts.failed ? "task-has-failed" : ""}>{t("tasks.counts", { done: counts.done, n: counts.targets, failed: counts.failed })}</span>
    </div>
  );
}
