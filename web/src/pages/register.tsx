// Registers a process, or edits its definition: as a form or as YAML, with a plan before anything is saved.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, may, post, put } from "../api.ts";
import type { Accepted, DefinitionFault, DefinitionPage, ParsedDefinition, Preview, Task } from "../api-types.ts";
import { wholeName } from "../live/names.ts";
import { listen, table } from "../live/stream.ts";
import { go, guard, href, place } from "../router.ts";
import { openAction, oneProcess } from "../ui/action.tsx";
import { documentText, same } from "../ui/diff.ts";
import { plain } from "../ui/format.ts";
import { Button, Dialog, Empty, PageHead, Problem } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { ProcessName } from "../ui/process-name.tsx";
import { t } from "../words.ts";
import { Diff, hostsText, variantsOf, type Variant } from "./process-definition.tsx";
import { allPaths, belongs, type Document } from "./register-fields.ts";
import { Form } from "./register-form.tsx";
import { Plan } from "./register-plan.tsx";

export default function Register() {
  const { query } = place.value;
  const space = query.get("space") ?? "", name = query.get("name") ?? "";
  if (!may("define")) return <Empty title={t("empty.rights")} />;
  return <Loader key={`${space}/${name}`} space={space} name={name} />;
}

async function readVariants(space: string, name: string): Promise<Variant[]> {
  const page = await get<DefinitionPage>("/definitions", { namespace: space, name, limit: 1000 });
  return variantsOf(page.definitions.filter((d) => d.namespace === space && d.name === name));
}

const documentOf = (v: Variant): Document => ({ ...(v.definition.document as Document), hosts: v.hosts });

function Loader({ space, name }: { space: string; name: string }) {
  const known = useLoad(async () => (space && name ? readVariants(space, name) : []), [space, name]);
  const [chosen, setChosen] = useState<number>();
  if (known.failure) return <Problem of={known.failure} retry={known.reload} />;
  if (!known.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const list = known.data;
  if (list.length > 1 && chosen === undefined) {
    return (
      <div class="card stack">
        <h1>{t("definition.chooseTitle")}</h1>
        <p>{t("definition.choose", { n: list.length })}</p>
        {list.map((v, i) => <Button key={i} onClick={() => setChosen(i)}>{hostsText(v.hosts)}</Button>)}
      </div>
    );
  }
  const variant = list[chosen ?? 0];
  const first: Document = variant ? documentOf(variant) : { namespace: space || "default", name, command: "" };
  return <Editor space={space} name={name} base={variant} first={first} />;
}

/** What a second editor has to know: the definition is not that which was read. */
type Conflict = { theirs: Document; digests: string[] };

function Editor({ space, name, base, first }: { space: string; name: string; base?: Variant; first: Document }) {
  const [mode, setMode] = useState<"form" | "yaml">("form");
  const [doc, setDoc] = useState(first);
  const [saved, setSaved] = useState(first); // what is registered
  const [expect, setExpect] = useState<string[]>(base?.digests ?? []);
  const [text, setText] = useState("");
  const [textOf, setTextOf] = useState<Document>(); // the document of the text
  const [faults, setFaults] = useState<DefinitionFault[]>([]);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [failure, setFailure] = useState<Failure>();
  const [plan, setPlan] = useState<Preview>();
  const [conflict, setConflict] = useState<Conflict>();
  const [leaving, setLeaving] = useState("");
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState("");
  const changed = mode === "yaml" ? text !== "" && (textOf === undefined || !same(textOf, saved)) : !same(doc, saved);

  const checked = useChecks(mode, doc, text, (p) => {
    setFaults(p.faults);
    if (mode === "yaml") setTextOf(isObject(p.document) ? p.document : undefined);
  }, setFailure);
  useGuard(changed && !done, setLeaving);
  useOthers(space, name, base !== undefined && !done, expect, (theirs) => setConflict(theirs));

  const show = async (to: "form" | "yaml") => {
    setFailure(undefined);
    try {
      if (to === "yaml") {
        if (!textOf || !same(textOf, doc)) {
          setText((await post<ParsedDefinition>("/definitions/parse", { document: doc })).text);
          setTextOf(doc);
        }
      } else {
        const p = await post<ParsedDefinition>("/definitions/parse", { text });
        setFaults(p.faults);
        if (!isObject(p.document)) return; // the faults say why
        setDoc(p.document);
        setTextOf(p.document);
      }
      setMode(to);
    } catch (err) { setFailure(asFailure(err)); }
  };

  const current = async (): Promise<Document | undefined> => {
    const p = await post<ParsedDefinition>("/definitions/parse", mode === "yaml" ? { text } : { document: doc });
    setFaults(p.faults);
    setTouched(new Set([...allPaths(), "hosts", "yaml"]));
    return p.faults.length === 0 && isObject(p.document) ? p.document : undefined;
  };

  const run = async (dry: boolean) => {
    setBusy(true);
    setFailure(undefined);
    try {
      const document = await current();
      if (!document) return setPlan(undefined);
      if (base && (document.name !== name || (document.namespace ?? "default") !== space)) throw new Failure(0, { message: t("definition.renamed", { name: `${space}/${name}` }) });
      if (dry) return setPlan(await put<Preview>("/processes", { ...document, expect, dry_run: true }));
      const accepted = await put<Accepted>("/processes", { ...document, expect });
      const task = await finished(accepted.task_id);
      setPlan(undefined);
      if (task.counts.failed > 0) throw new Failure(0, { message: task.attempts.find((a) => a.message && a.code !== "ok")?.message ?? t("page.failed") });
      setSaved(document);
      setDoc(document);
      setTextOf(mode === "yaml" ? document : undefined);
      setDone(String(document.name));
    } catch (err) {
      const f = asFailure(err);
      setPlan(undefined);
      if (f.status === 409 && base) {
        const theirs = await newest(space, name).catch(() => undefined);
        if (theirs) setConflict(theirs);
      }
      setFailure(f);
    } finally { setBusy(false); }
  };

  const takeTheirs = () => { setDoc(conflict!.theirs); setSaved(conflict!.theirs); setExpect(conflict!.digests); setText(""); setTextOf(undefined); setMode("form"); setConflict(undefined); setFailure(undefined); setPlan(undefined); };
  const keepMine = () => { setExpect(conflict!.digests); setSaved(conflict!.theirs); setConflict(undefined); setFailure(undefined); setPlan(undefined); };
  const shown = faults.filter((f) => touched.has(mode === "yaml" ? "yaml" : f.path) || [...touched].some((p) => belongs(f.path, p))); // of what was touched
  const other = faults.filter((f) => touched.has("hosts") && !allPaths().some((p) => belongs(f.path, p)) && !belongs(f.path, "hosts"));

  if (done) return <Done space={String(doc.namespace ?? "default")} name={done} fresh={!base} />;
  return (
    <div class="stack register">
      <PageHead title={base ? <>{t("definition.edit")} <ProcessName space={space} name={name} /></> : t("definition.new")}>
        <div class="row" role="group" aria-label={t("definition.form")}>
          <button type="button" class="chip" aria-pressed={mode === "form"} onClick={() => { if (mode !== "form") void show("form"); }}>{t("definition.asForm")}</button>
          <button type="button" class="chip" aria-pressed={mode === "yaml"} onClick={() => { if (mode !== "yaml") void show("yaml"); }}>YAML</button>
        </div>
        <Button kind="main" disabled={busy || !changed} onClick={() => { void run(true); }}>{t("definition.plan")}</Button>
      </PageHead>
      {conflict && <ConflictNote of={conflict} before={saved} onTheirs={takeTheirs} onMine={keepMine} />}
      {failure && <Problem of={failure} title={t("definition.notSaved")} />}
      {mode === "form"
        ? <Form doc={doc} faults={faults} touched={touched} fixed={base !== undefined} onChange={setDoc} onTouch={(p) => setTouched((old) => new Set([...old, p]))} />
        : <YamlText text={text} faults={shown} onChange={(to) => { setText(to); setTouched((old) => new Set([...old, "yaml"])); }} />}
      {mode === "form" && other.length > 0 && <ul class="problem" role="alert">{other.map((f) => <li key={f.path}><code>{f.path}</code> {plain(f.text)}</li>)}</ul>}
      <p class="dim" role="status">{!checked ? t("definition.checking") : shown.length > 0 ? t("definition.faults", { n: shown.length }) : faults.length === 0 && t("definition.good")}</p>
      {plan && <Plan of={plan} busy={busy} onSave={() => { void run(false); }} onClose={() => setPlan(undefined)} />}
      {leaving && (
        <Dialog title={t("definition.leaveTitle")} onClose={() => setLeaving("")}>
          <p>{t("definition.leave")}</p>
          <div class="dialog-foot">
            <Button onClick={() => setLeaving("")}>{t("definition.stay")}</Button>
            <Button kind="danger" onClick={() => { guard.leave = null; go(leaving); }}>{t("definition.discard")}</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

const isObject = (v: unknown): v is Document => v !== null && typeof v === "object" && !Array.isArray(v);

const asFailure = (err: unknown) => (err instanceof Failure ? err : new Failure(0, { message: String(err) }));

/** Asks the server about what was typed, shortly after the last key. It returns whether the answer is about what is shown. */
function useChecks(mode: string, doc: Document, text: string, take: (p: ParsedDefinition) => void, fail: (f: Failure) => void): boolean {
  const [checked, setChecked] = useState(true);
  useEffect(() => {
    setChecked(false);
    let gone = false;
    const timer = setTimeout(() => {
      post<ParsedDefinition>("/definitions/parse", mode === "yaml" ? { text } : { document: doc }).then(
        (p) => { if (!gone) { take(p); setChecked(true); } }, (err: unknown) => { if (!gone) fail(asFailure(err)); });
    }, 300);
    return () => { gone = true; clearTimeout(timer); };
  }, [mode, mode === "yaml" ? text : doc]);
  return checked;
}

/** Asks before changes are lost: by a dialog of the page, or by the browser if the tab is closed. */
function useGuard(on: boolean, ask: (address: string) => void): void {
  useEffect(() => {
    if (!on) return;
    guard.leave = ask;
    const close = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", close);
    return () => { guard.leave = null; removeEventListener("beforeunload", close); };
  }, [on]);
}

async function newest(space: string, name: string): Promise<Conflict | undefined> {
  const list = await readVariants(space, name);
  if (list.length === 0) return undefined;
  return { theirs: documentOf(list[0]), digests: list.flatMap((v) => v.digests) };
}

/** Looks at the definition again when a task about it has run: another person may have changed it. */
function useOthers(space: string, name: string, on: boolean, expect: string[], found: (c: Conflict) => void): void {
  const latest = useRef(expect);
  latest.current = expect;
  useEffect(() => {
    if (!on) return;
    return listen("tasks", (tasks) => {
      if (!tasks.some((task) => task.actions.some((a) => a === "register" || a === "update") && task.processes.some((p) => p.namespace === space && p.name === name))) return;
      newest(space, name).then((n) => { if (n && n.digests.some((d) => !latest.current.includes(d))) found(n); }, () => {});
    });
  }, [space, name, on]);
}

async function finished(id: string): Promise<Task> {
  for (;;) {
    const task = await get<Task>(`/tasks/${encodeURIComponent(id)}`, { wait: "10s", show: "failed" });
    if (task.final) return task;
  }
}

function YamlText({ text, faults, onChange }: { text: string; faults: DefinitionFault[]; onChange: (text: string) => void }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const jump = (line: number) => {
    const b = box.current;
    if (!b) return;
    const start = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    b.focus();
    b.setSelectionRange(start, start + (text.slice(start).split("\n")[0] ?? "").length);
  };
  return (
    <div class="stack">
      <label class="unseen" for="definition-yaml">YAML</label>
      <textarea id="definition-yaml" ref={box} class="yaml" rows={Math.min(40, Math.max(16, text.split("\n").length + 1))} spellcheck={false} value={text}
        aria-invalid={faults.length > 0 || undefined} aria-describedby="definition-yaml-faults" onInput={(e) => onChange(e.currentTarget.value)} />
      <ul id="definition-yaml-faults" class="fault" aria-live="polite">
        {faults.map((f, i) => <li key={i}><Button kind="quiet" onClick={() => jump(f.line)}>{t("definition.line", { n: f.line })}</Button> {f.path && <code>{plain(f.path)}</code>} {plain(f.text)}</li>)}
      </ul>
    </div>
  );
}

function ConflictNote({ of: c, before, onTheirs, onMine }: { of: Conflict; before: Document; onTheirs: () => void; onMine: () => void }) {
  return (
    <section class="card stack conflict" role="alert">
      <h2>{t("definition.conflict")}</h2>
      <p>{t("definition.conflictHint")}</p>
      <Diff before={documentText(before)} after={documentText(c.theirs)} />
      <div class="row"><Button onClick={onTheirs}>{t("definition.theirs")}</Button><Button onClick={onMine}>{t("definition.mine")}</Button></div>
    </section>
  );
}

function Done({ space, name, fresh }: { space: string; name: string; fresh: boolean }) {
  const path = `/process/${encodeURIComponent(space)}/${encodeURIComponent(name)}`;
  const act = fresh ? "start" : "restart";
  return (
    <div class="empty">
      <h1>{t("definition.saved", { name: plain(wholeName(table.value, space, name)) })}</h1>
      <p role="status">{fresh ? t("definition.savedNew") : t("definition.savedOld")}</p>
      <div class="row">
        {may("operate") && <Button kind="main" onClick={() => openAction({ action: act, selection: oneProcess(space, name) })}>{t(`action.${act}`)}</Button>}
        <a class="button" href={href(path)}>{t("definition.toProcess")}</a>
      </div>
    </div>
  );
}
