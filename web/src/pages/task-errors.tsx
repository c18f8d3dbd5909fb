// The errors of a task, grouped by text.
import { useMemo, useState } from "preact/hooks";
import type { Attempt } from "../api-types.ts";
import { Button, CopyButton, Text } from "../ui/kit.tsx";
import { t } from "../words.ts";
import { groupErrors, type ErrorGroup } from "./task-model.ts";

const mostGroups = 50;
const mostHosts = 200;

export function Errors({ attempts, onRetry }: { attempts: readonly Attempt[]; onRetry?: (positions: number[]) => void }) {
  const groups = useMemo(() => groupErrors(attempts), [attempts]);
  const [all, setAll] = useState(false);
  if (groups.length === 0) return null;
  return (
    <section class="card" aria-label={t("task.errors")}>
      <h2>{t("task.errors")}</h2>
      <ul class="task-errors">
        {(all ? groups : groups.slice(0, mostGroups)).map((g) => <Group key={g.key} of={g} onRetry={onRetry} />)}
      </ul>
      {!all && groups.length > mostGroups && <Button onClick={() => setAll(true)}>{t("more")}</Button>}
    </section>
  );
}

function Group({ of: g, onRetry }: { of: ErrorGroup; onRetry?: (positions: number[]) => void }) {
  return (
    <li>
      <details>
        <summary>
          {g.code && <code>{g.code}</code>} <Text of={g.message.slice(0, 4000) || t("task.noMessage")} class="task-error-text" />
        </summary>
        <ul class="task-hosts" aria-label={t("task.hosts")}>
          {g.hosts.slice(0, mostHosts).map((h) => <li key={h}><Text of={h} class="mono" /></li>)}
          {g.hosts.length > mostHosts && <li class="dim">{t("task.moreHosts", { n: g.hosts.length - mostHosts })}</li>}
        </ul>
      </details>
      <div class="row">
        <span class="task-error-count">{t("task.errorCount", { n: g.positions.length, hosts: g.hosts.length })}</span>
        <CopyButton text={() => g.hosts.join("\n")} label={t("task.copyHosts", { n: g.hosts.length })} />
        {g.repeats ? onRetry && <Button onClick={() => onRetry(g.positions)}>{t("task.retryThese", { n: g.positions.length })}</Button> : <span class="dim">{t("task.superseded")}</span>}
      </div>
    </li>
  );
}
