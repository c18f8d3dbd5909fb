// The dialog of an action: what it would do, the confirmation, and what came of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, send } from "../api.ts";
import type { Accepted, Preview, Request } from "../api-types.ts";
import { table } from "../live/stream.ts";
import { href } from "../router.ts";
import { number, t, tOf, type Word } from "../words.ts";
import type { Asked } from "./action.tsx";
import { summarise, tooLarge, type Summary } from "./action-preview.ts";
import { followTask } from "./action-toast.tsx";
import { exact, plain } from "./format.ts";
import { Button, Dialog, Field, Problem, Text } from "./kit.tsx";
import { useLoad } from "./load.ts";
import { ProcessName } from "./process-name.tsx";

const harmless = ["start", "manage"];
const waits = [600, 3600, 86400];

/** Sends the request of an action: dry, or for real. */
async function request(of: Asked, more: object): Promise<Response> {
  if (of.action === "unregister") return send("DELETE", "/processes", { body: { ...of.selection, ...more } });
  return send("POST", "/operations", { body: { action: of.action, ...of.selection, ...more } });
}

export function ActionDialog({ of, onClose }: { of: Asked; onClose: () => void }) {
  const [wait, setWait] = useState(0);
  const [confirm, setConfirm] = useState("");
  const [working, setWorking] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const [held, setHeld] = useState<Request>();
  const offline = wait ? { when_offline: "wait", wait_seconds: wait } : {};
  const large = tooLarge(of.selection);
  const preview = useLoad(large ? undefined : async () => (await request(of, { ...offline, dry_run: true })).json() as Promise<Preview>, [of, wait]);
  const found = preview.data && summarise(preview.data, of.selection, table.value);

  const asks = failure?.faults.find((f) => f.path === "confirm"); // the server wants the number
  const others = failure && !asks ? failure : undefined;
  const ready = !!found && found.reached > 0 && found.second !== "refused" && !working && !preview.failure && (!asks || Number(confirm) > 0);

  const run = async () => {
    if (!ready) return;
    setWorking(true);
    try {
      const answer = await (await request(of, { ...offline, ...(Number(confirm) > 0 ? { confirm: Number(confirm) } : {}) })).json() as Partial<Accepted> & { request?: Request };
      if (answer.request) {
        setHeld(answer.request);
        setWorking(false);
        return;
      }
      followTask(answer.task_id!, of.action, answer.targets ?? 0);
      of.onStarted?.(answer.task_id!);
      onClose();
    } catch (err) {
      setFailure(err instanceof Failure ? err : new Failure(0, { message: String(err) }));
      setWorking(false);
    }
  };

  const verb = tOf("action.", of.action);
  return (
    <Dialog title={t("act.title", { action: verb })} onClose={onClose}>
      <p class="dim">{t(`act.what.${of.action}` as Word)}</p>
      {large && <p class="problem" role="alert">{t(large.word, { n: large.n, most: large.most })}</p>}
      {preview.failure && <Problem of={preview.failure} retry={preview.reload} />}
      {!large && !found && !preview.failure && <p role="status">{t("act.looking")}</p>}
      {found && !held && <Found of={found} />}
      {found?.second && !held && <p class="card warn" role="status">{t(`act.second.${found.second}` as Word)}</p>}
      {found && !held && of.action !== "unregister" && (found.offline > 0 || wait > 0) && <Offline hosts={found.offline} wait={wait} onWait={setWait} />}
      {held && <Held request={held} />}
      {!held && asks && found && <Confirm text={asks.text} value={confirm} onChange={setConfirm} onEnter={run} />}
      {others && <Problem of={others} />}
      <footer class="dialog-foot">
        {held ? <Button kind="main" onClick={onClose}>{t("close")}</Button> : (
          <>
            <Button onClick={onClose}>{t("cancel")}</Button>
            <Run kind={harmless.includes(of.action) ? "main" : "danger"} disabled={!ready} onClick={run}
              label={found ? t(found.second === "waits" ? "act.ask" : "act.run", { action: verb, n: found.reached }) : verb} />
          </>
        )}
      </footer>
    </Dialog>
  );
}

/** The button that runs the action has the focus as soon as it can be pressed, so that Enter is enough. */
function Run({ kind, disabled, onClick, label }: { kind: "main" | "danger"; disabled: boolean; onClick: () => void; label: string }) {
  const ref = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const active = document.activeElement;
    if (!disabled && (!active || !["INPUT", "SELECT"].includes(active.tagName))) ref.current?.querySelector("button")?.focus();
  }, [disabled]);
  return <span ref={ref}><Button kind={kind} disabled={disabled} onClick={onClick}>{label}</Button></span>;
}

function Found({ of }: { of: Summary }) {
  return (
    <div class="stack">
      <p>{of.host && !of.partly ? t("act.reachesOne", { n: of.reached, host: plain(of.host) }) : t(of.partly ? "act.reachesPartly" : "act.reaches", { n: of.reached, hosts: of.hosts })}</p>
      <ul class="act-names">
        {of.names.map((n) => <li key={`${n.space}/${n.name}`}><ProcessName space={n.space} name={n.name} class="one-line" /> {of.hosts > 1 && <span class="dim">{t("act.onHosts", { n: n.count })}</span>}</li>)}
        {of.moreNames > 0 && <li class="dim">{t("act.moreNames", { n: of.moreNames })}</li>}
      </ul>
      {of.rejected.length > 0 && (
        <div class="act-rejected">
          <p><strong>{t("act.rejected", { n: of.rejectedCount })}</strong></p>
          <ul>
            {of.rejected.map((r) => <li key={r.message}><span>{number(r.count)} ×</span> <code>{plain(r.code)}</code> <Text of={r.message} /></li>)}
          </ul>
        </div>
      )}
    </div>
  );
}

/** What happens with hosts that are offline. */
function Offline({ hosts, wait, onWait }: { hosts: number; wait: number; onWait: (seconds: number) => void }) {
  return (
    <Field label={t("act.offline", { n: hosts })}>
      {(a) => (
        <select {...a} value={String(wait)} onChange={(e) => onWait(Number(e.currentTarget.value))}>
          <option value="0">{t("act.offline.fail")}</option>
          {waits.map((s) => <option key={s} value={String(s)}>{t(`act.offline.${s}` as Word)}</option>)}
        </select>
      )}
    </Field>
  );
}

/** The number that the server wants to be typed. */
function Confirm({ text, value, onChange, onEnter }: { text: string; value: string; onChange: (s: string) => void; onEnter: () => void }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => { ref.current?.querySelector("input")?.focus(); }, []);
  return (
    <div ref={ref} class="act-confirm">
      <Field label={t("act.confirm")} hint={plain(text)}>
        {(a) => (
          <input {...a} type="text" inputMode="numeric" autoComplete="off" value={value}
            onInput={(e) => onChange(e.currentTarget.value.trim())}
            onKeyDown={(e) => { if (e.key === "Enter" && !e.isComposing) onEnter(); }} />
        )}
      </Field>
    </div>
  );
}

function Held({ request }: { request: Request }) {
  return (
    <div role="status" class="stack">
      <p><strong>{t("act.held", { id: String(request.id) })}</strong></p>
      <p>{t("act.heldUntil", { time: request.expires ? exact(Date.parse(request.expires)) : "-" })}</p>
      <p><a href={href("/tasks")}>{t("nav.tasks")}</a></p>
    </div>
  );
}
