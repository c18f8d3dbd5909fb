// Applies a document: the server checks it as one types and says its plan; applying it needs the version of the plan.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, send } from "../api.ts";
import type { Applied } from "../api-types.ts";
import { href } from "../router.ts";
import { Button, Field, Problem, Text } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { t } from "../words.ts";
import { bizOf } from "./business-model.ts";
import { PlanList } from "./business-plan.tsx";

const pause = 600;
const largest = 64 << 20;

interface Options { prune: boolean; takeOver: boolean }

const apply = async (biz: number, yaml: string, o: Options, more: { dry_run?: boolean; version?: number }, signal?: AbortSignal) =>
  (await send("PUT", `/topology/${biz}`, { yaml, signal, query: { ...more, dry_run: more.dry_run || undefined, prune: o.prune || undefined, take_over: o.takeOver || undefined } })).json() as Promise<Applied>;

export function Apply({ biz, version, source, onApplied }: { biz: number; version: number; source?: string; onApplied?: () => void }) {
  const [text, setText] = useState("");
  const [options, setOptions] = useState<Options>({ prune: false, takeOver: false });
  const [plan, setPlan] = useState<{ of: Applied; text: string }>();
  const [failure, setFailure] = useState<Failure>();
  const [done, setDone] = useState<Applied>();
  const [conflict, setConflict] = useState<{ was: number; now: number }>();
  const [busy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  const about = bizOf(text);

  // Begin with the document as it is.
  const touched = useRef(false);
  useEffect(() => {
    if (!biz) return;
    const stop = new AbortController();
    send("GET", `/topology/${biz}`, { accept: "application/yaml", signal: stop.signal }).then((a) => a.text()).then((doc) => { if (!touched.current) setText(doc); }, () => {});
    return () => stop.abort();
  }, [biz]);

  // Ask for the plan when the text was not changed for a moment.
  useEffect(() => {
    setFailure(undefined);
    if (!about || !text.trim()) { setPlan(undefined); return; }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      apply(about, text, options, { dry_run: true }, stop.signal).then(
        (of) => setPlan({ of, text }),
        (err: unknown) => { if (!stop.signal.aborted && err instanceof Failure) { setPlan(undefined); setFailure(err); } });
    }, pause);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text, options, about, round]);

  const change = (next: string) => {
    touched.current = true;
    setDone(undefined);
    setConflict(undefined);
    setText(next);
  };
  const run = async () => {
    if (!plan) return;
    setBusy(true);
    setConflict(undefined);
    try {
      setDone(await apply(about, text, options, { version: plan.of.version }));
      onApplied?.();
      setRound((n) => n + 1);
    } catch (err) {
      if (!(err instanceof Failure)) throw err;
      await explain(err, plan.of.version);
    }
    setBusy(false);
  };
  /** A conflict by another person is said as such, with the new plan. */
  const explain = async (err: Failure, was: number) => {
    if (err.status !== 409) return setFailure(err);
    try {
      const fresh = await apply(about, text, options, { dry_run: true });
      if (fresh.version === was) return setFailure(err);
      setConflict({ was, now: fresh.version });
      setPlan({ of: fresh, text });
    } catch (other) {
      setFailure(other instanceof Failure ? other : err);
    }
  };

  const current = plan && plan.text === text ? plan.of : undefined;
  const changes = current ? current.plan.added.length + current.plan.changed.length + current.plan.removed.length : 0;
  return (
    <section class="card stack" aria-label={t("biz.new")} data-version={version}>
      <p class="hint">{t("apply.hint")}</p>
      <Field label={t("apply.text")}>{(a) => <textarea {...a} class="biz-text" rows={18} spellcheck={false} value={text} onInput={(e) => change(e.currentTarget.value)} />}</Field>
      <File onText={change} />
      {biz > 0 && source === "cmdb" && <label class="row"><input type="checkbox" checked={options.takeOver} onChange={(e) => setOptions({ ...options, takeOver: e.currentTarget.checked })} /> {t("apply.takeOver")}</label>}
      {text.trim() !== "" && !about && <p class="fault">{t("apply.noBiz")}</p>}
      {biz > 0 && about > 0 && about !== biz && <p class="fault">{t("apply.otherBiz", { n: String(about) })}</p>}
      {conflict && <p class="problem" role="alert">{t("apply.conflict", { was: String(conflict.was), now: String(conflict.now) })}</p>}
      {failure && <Problem of={failure} />}
      {done && <Done of={done} />}
      {about > 0 && !current && !failure && <p class="dim" role="status">{t("apply.checking")}</p>}
      {current && !(done && changes === 0) && <PlanList of={current} />}
      {(options.prune || (current?.managed ?? 0) > 0) && <Prune of={current} on={options.prune} onChange={(prune) => setOptions({ ...options, prune })} />}
      {current && changes > 0 && <div><Button kind="main" disabled={busy || (current.managed > 0 && !options.prune)} onClick={() => { void run(); }}>{t("apply.go")}</Button></div>}
    </section>
  );
}

function File({ onText }: { onText: (text: string) => void }) {
  const [large, setLarge] = useState(false);
  return (
    <Field label={t("apply.file")} fault={large ? t("apply.tooLarge") : undefined}>{(a) => (
      <input {...a} type="file" accept=".yaml,.yml,.json" onChange={(e) => {
        const file = e.currentTarget.files?.[0];
        if (!file) return;
        setLarge(file.size > largest);
        if (file.size <= largest) void file.text().then(onText);
      }} />
    )}</Field>
  );
}

function Prune({ of, on, onChange }: { of?: Applied; on: boolean; onChange: (on: boolean) => void }) {
  const first = of?.managed_instances?.[0];
  return (
    <div class="stack">
      {of && of.managed > 0 && <p>{t("apply.managed", { n: of.managed, name: first ? plain(`${first.path} ${first.text}`) : "-" })}</p>}
      <label class="row"><input type="checkbox" checked={on} onChange={(e) => onChange(e.currentTarget.checked)} /> {t("apply.prune")}</label>
    </div>
  );
}

function Done({ of }: { of: Applied }) {
  return (
    <p role="status" class="biz-done">
      {t("apply.done", { biz: String(of.biz), version: String(of.version) })} <a href={href(`/businesses/${of.biz}`)}>{t("apply.open")}</a>
      {of.task_id && <> <a href={href(`/tasks/${encodeURIComponent(of.task_id)}`)}><Text of={t("apply.task")} /></a></>}
    </p>
  );
}
