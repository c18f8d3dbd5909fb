// Repeats failed processes of a task as a new one, after a look at what it would do.
import { useRef, useState } from "preact/hooks";
import { Failure, post, send } from "../api.ts";
import type { Accepted, Preview, Request, Task } from "../api-types.ts";
import { go, href } from "../router.ts";
import { Button, Dialog, Field, Problem, Text } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { ProcessName } from "../ui/process-name.tsx";
import { t, tOf } from "../words.ts";
import { hostText } from "./task-model.ts";

const listed = 100;

export function RetryDialog({ task, positions, onClose }: { task: Task; positions?: number[]; onClose: () => void }) {
  const path = `/tasks/${encodeURIComponent(task.task_id)}/retry`;
  const key = useRef(Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join(""));
  const look = useLoad(() => post<Preview>(path, { attempts: positions, dry_run: true }), [path]);
  const [nothing, setNothing] = useState(false); // all has been repeated meanwhile
  const [failure, setFailure] = useState<Failure>();
  const [confirm, setConfirm] = useState(""); // what was typed
  const [wanted, setWanted] = useState(""); // why the server wants a number
  const [wait, setWait] = useState(false);
  const [busy, setBusy] = useState(false);
  const [held, setHeld] = useState(0);

  const run = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const body = { attempts: positions, ...(confirm ? { confirm: Number(confirm) } : {}), ...(wait ? { when_offline: "wait", wait_seconds: 3600 } : {}) };
      const answer = await (await send("POST", path, { body, key: `${key.current}${confirm}${wait}` })).json() as Accepted & { request?: Request };
      if (answer.request) setHeld(answer.request.id);
      else if (answer.task_id) {
        onClose();
        go(href(`/tasks/${encodeURIComponent(answer.task_id)}`, { of: task.task_id }));
      } else setNothing(true);
    } catch (err) {
      if (!(err instanceof Failure)) throw err;
      const need = err.faults.find((f) => f.path === "confirm");
      if (need) setWanted(need.text);
      else setFailure(err);
    }
    setBusy(false);
  };

  const superseded = positions ? 0 : task.attempts.filter((a) => a.code === "superseded" && a.verdict === "failed").length;
  const preview: Preview | undefined = nothing ? { targets: 0, rejected: 0, new: 0, changed: 0, unchanged: 0, processes: [] } : look.data;
  const hosts = new Set(preview?.processes.map((p) => hostText(p.host))).size;
  return (
    <Dialog title={t("retry.title")} onClose={onClose} wide>
      {look.failure && !preview && <Problem of={look.failure} retry={look.reload} />}
      {failure && <Problem of={failure} />}
      {held > 0 && <p role="status">{t("retry.held", { id: String(held) })}</p>}
      {!preview && !look.failure && <p class="dim loading" role="status">{t("loading")}</p>}
      {preview && (preview.targets === 0 ? <p>{t("retry.nothing")}</p> : <Plan of={preview} hosts={hosts} />)}
      {superseded > 0 && <p class="dim">{t("retry.superseded", { n: superseded })}</p>}
      {!positions && task.counts.running > 0 && <p class="dim">{t("retry.open", { n: task.counts.running })}</p>}
      {preview && preview.targets > 0 && !held && (
        <form class="stack" onSubmit={(e) => { e.preventDefault(); void run(); }}>
          <label class="row"><input type="checkbox" checked={wait} onChange={(e) => setWait(e.currentTarget.checked)} /> {t("retry.wait")}</label>
          {wanted && <Field label={t("retry.confirm")} fault={plain(wanted)}>{(a) => <input {...a} inputMode="numeric" pattern="[0-9]{1,7}" autoFocus required value={confirm} onInput={(e) => setConfirm(e.currentTarget.value)} />}</Field>}
          <div class="dialog-foot">
            <Button onClick={onClose}>{t("cancel")}</Button>
            <Button kind="main" type="submit" disabled={busy}>{t("retry.go")}</Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Plan({ of: p, hosts }: { of: Preview; hosts: number }) {
  const rejected = p.processes.find((r) => r.message && r.code);
  const rows = p.processes.slice(0, listed);
  return (
    <>
      <p><strong>{t("retry.plan", { n: p.targets, hosts })}</strong></p>
      {p.rejected > 0 && <p>{t("retry.rejected", { n: p.rejected })} <Text of={rejected?.message ?? ""} /></p>}
      <div class="scroll task-plan" tabIndex={0} role="region" aria-label={t("retry.title")}>
        <table>
          <thead><tr><th scope="col">{t("task.action")}</th><th scope="col">{t("tasks.name")}</th><th scope="col">{t("tasks.host")}</th></tr></thead>
          <tbody>{rows.map((r, i) => <tr key={i}><td>{tOf("action.", r.action)}</td><td><ProcessName space={r.namespace} name={r.name} /></td><td><Text of={hostText(r.host)} /></td></tr>)}</tbody>
        </table>
      </div>
      {p.targets > rows.length && <p class="dim">{t("retry.first", { n: rows.length })}</p>}
    </>
  );
}
