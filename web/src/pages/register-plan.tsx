// What saving a definition would change, and on which hosts.
import type { Preview } from "../api-types.ts";
import { plain } from "../ui/format.ts";
import { Button, Dialog } from "../ui/kit.tsx";
import { t } from "../words.ts";

const most = 100; // rows on screen

export function Plan({ of: p, busy, onSave, onClose }: { of: Preview; busy: boolean; onSave: () => void; onClose: () => void }) {
  return (
    <Dialog wide title={t("definition.planTitle")} onClose={onClose}>
      <p>{t("definition.planCount", { new: p.new, changed: p.changed, same: p.unchanged })} {p.rejected > 0 && <strong>{t("definition.planRejected", { n: p.rejected })}</strong>}</p>
      <div class="scroll plan">
        <table>
          <thead><tr><th>{t("process.host")}</th><th>{t("definition.planWhat")}</th><th>{t("definition.planFields")}</th></tr></thead>
          <tbody>
            {p.processes.slice(0, most).map((r) => (
              <tr key={`${r.host.agent} ${r.namespace} ${r.name}`}>
                <td class="mono">{r.host.ip ? `${r.host.cloud}:${r.host.ip}` : r.host.agent} {plain(r.name)}</td>
                <td>{r.code ? <span class="fault">{plain(r.message || r.code)}</span> : r.definition === "new" ? t("definition.isNew") : r.definition === "changed" ? t("definition.isChanged") : t("definition.isSame")}</td>
                <td>{(r.fields ?? []).map((f, i) => <div key={i} class={`plan-field ${f.startsWith("+") ? "diff-new" : f.startsWith("-") ? "diff-old" : ""}`}>{plain(f)}</div>)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {p.processes.length > most && <p class="dim">{t("definition.planMore", { n: p.targets - most })}</p>}
      <p class="dim">{t("definition.planHint")}</p>
      <div class="dialog-foot">
        <Button onClick={onClose}>{t("cancel")}</Button>
        <Button kind="main" disabled={busy || p.rejected === p.targets} onClick={onSave}>{t("save")}</Button>
      </div>
    </Dialog>
  );
}
