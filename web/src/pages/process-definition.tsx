// The definition of a process: as fields, YAML and JSON, with its history and the difference of two versions.
import { useState } from "preact/hooks";
import { get, may, post } from "../api.ts";
import type { AuditDetail, Definition, DefinitionPage, ParsedDefinition, TaskPage } from "../api-types.ts";
import { href, place, setQuery } from "../router.ts";
import { diffLines, documentText, fieldsOf, same } from "../ui/diff.ts";
import { exact, plain } from "../ui/format.ts";
import { CopyButton, Empty, Moment, Problem, Text } from "../ui/kit.tsx";
import { useLoad, type Loaded } from "../ui/load.ts";
import { t } from "../words.ts";
import { shortTask } from "./task-model.ts";

/** Definitions that are equal but for their hosts, with all their hosts. */
export interface Variant { definition: Definition; hosts: unknown[]; digests: string[] }

export function variantsOf(list: Definition[]): Variant[] {
  const out: Variant[] = [];
  const bare = (d: Definition) => { const { hosts: _, ...rest } = d.document as Record<string, unknown>; return rest; };
  for (const d of list) {
    const hosts = (d.document as { hosts?: unknown[] }).hosts ?? [];
    const like = out.find((v) => same(bare(v.definition), bare(d)));
    if (!like) out.push({ definition: d, hosts: [...hosts], digests: [d.digest] });
    else {
      like.hosts.push(...hosts);
      if (!like.digests.includes(d.digest)) like.digests.push(d.digest);
    }
  }
  return out;
}

export function DefinitionTab({ space, name, loaded }: { space: string; name: string; loaded: Loaded<DefinitionPage> }) {
  const variants = variantsOf(loaded.data?.definitions ?? []);
  const [chosen, setChosen] = useState(0);
  const form = place.value.query.get("form") ?? "fields";
  if (loaded.failure && !loaded.data) return <Problem of={loaded.failure} retry={loaded.reload} />;
  if (!loaded.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const variant = variants[Math.min(chosen, variants.length - 1)];
  if (!variant) return <Empty title={t("definition.none")} />;

  const document = { ...(variant.definition.document as object), hosts: variant.hosts };
  return (
    <div class="stack">
      <div class="row">
        {variants.length > 1 && (
          <label class="row">{t("definition.variant", { n: variants.length })}
            <select value={chosen} onChange={(e) => setChosen(Number(e.currentTarget.value))}>
              {variants.map((v, i) => <option key={i} value={i}>{hostsText(v.hosts)}</option>)}
            </select>
          </label>
        )}
        <div class="row" role="group" aria-label={t("definition.form")}>
          {["fields", "yaml", "json"].map((f) => <button key={f} type="button" class="chip" aria-pressed={f === form} onClick={() => setQuery({ form: f === "fields" ? undefined : f })}>{f === "fields" ? t("definition.fields") : f.toUpperCase()}</button>)}
        </div>
        {may("define") && <a class="button" href={href("/register", { space, name })}>{t("process.edit")}</a>}
      </div>
      <Origin of={variant.definition} />
      {form === "json" ? <Code text={JSON.stringify(document, null, 2)} /> : form === "yaml" ? <Yaml document={document} /> : <Fields of={variant.definition} hosts={variant.hosts} />}
      <Versions space={space} name={name} />
    </div>
  );
}

export function hostsText(hosts: unknown[]): string {
  const one = (h: unknown) => { const { ip, cloud, agent } = h as { ip?: string; cloud?: number; agent?: string }; return ip ? `${cloud ?? 0}:${ip}` : agent ?? ""; };
  return hosts.length > 3 ? `${hosts.slice(0, 3).map(one).join(", ")} … (${hosts.length})` : hosts.map(one).join(", ");
}

function Origin({ of: d }: { of: Definition }) {
  const o = d.origin;
  return (
    <p class="dim">{t("definition.registered")} <Moment at={d.registered_at} />{o && <>{t("mark.and")}{t("definition.changed")} <Moment at={o.at} /> {(o.user || o.app) && t("event.by", { user: plain(o.user || o.app || "") })} {o.task && <a href={href(`/tasks/${encodeURIComponent(o.task)}`)}>{shortTask(o.task)}</a>}</>}</p>
  );
}

function Fields({ of: d, hosts }: { of: Definition; hosts: unknown[] }) {
  const defaults = new Set(d.defaults ?? []);
  const fields = fieldsOf(d.effective ?? d.document).filter(([path]) => path !== "hosts");
  return (
    <dl class="facts card definition-fields">
      <dt>hosts</dt><dd>{hostsText(hosts)}</dd>
      {fields.map(([path, value]) => <FieldRow key={path} path={path} value={value} byDefault={defaults.has(path)} />)}
    </dl>
  );
}

function FieldRow({ path, value, byDefault }: { path: string; value: string; byDefault: boolean }) {
  return (
    <>
      <dt><code>{plain(path)}</code></dt>
      <dd class={byDefault ? "dim" : ""}>{value.includes("\n") ? <pre>{value}</pre> : <Text of={value} />} {byDefault && <small>{t("definition.default")}</small>}</dd>
    </>
  );
}

function Code({ text }: { text: string }) {
  return <div class="card code"><CopyButton text={text} /><pre tabIndex={0}>{text}</pre></div>;
}

function Yaml({ document }: { document: unknown }) {
  const text = useLoad(() => post<ParsedDefinition>("/definitions/parse", { document }), [JSON.stringify(document)]);
  if (text.failure) return <Problem of={text.failure} retry={text.reload} />;
  return text.data ? <Code text={text.data.text} /> : <p class="dim">{t("loading")}</p>;
}

interface Version { task: string; at: string | null; by: string; document?: unknown }

/** The versions of a definition, from the tasks that brought them. Their contents are in the audit, which only admins read. */
async function readVersions(space: string, name: string, signal: AbortSignal): Promise<Version[]> {
  const tasks = await get<TaskPage>("/tasks", { namespace: space, name, action: ["register"], limit: 20 }, signal);
  const out: Version[] = [];
  for (const task of tasks.tasks) {
    const version: Version = { task: task.task_id, at: task.at, by: task.user || task.app };
    const row = task.task_id.split(":").pop();
    if (may("audit") || may("admin")) {
      try {
        const detail = await get<AuditDetail>(`/audit/${row}`, { limit: 1000 }, signal);
        const item = detail.items.find((i) => i.namespace === space && i.name === name && i.definition);
        if (item?.definition && detail.row.task_id === task.task_id) version.document = detail.definitions[item.definition];
      } catch { /* the row is not there any more, or the user may not read it */ }
    }
    out.push(version);
  }
  return out;
}

function Versions({ space, name }: { space: string; name: string }) {
  const versions = useLoad((signal) => readVersions(space, name, signal), [space, name]);
  const [from, setFrom] = useState(1);
  const [to, setTo] = useState(0);
  const list = versions.data ?? [];
  const known = list.filter((v) => v.document !== undefined);
  const a = known[Math.min(from, known.length - 1)], b = known[Math.min(to, known.length - 1)];
  const select = (label: string, value: number, set: (n: number) => void) => (
    <label class="row">{label}
      <select value={value} onChange={(e) => set(Number(e.currentTarget.value))}>
        {known.map((v, i) => <option key={v.task} value={i}>{`${v.at ? exact(Date.parse(v.at)) : ""} ${plain(v.by)}`}</option>)}
      </select>
    </label>
  );
  return (
    <section class="card stack">
      <h2>{t("definition.history")}</h2>
      {versions.failure && <Problem of={versions.failure} retry={versions.reload} />}
      {versions.data && list.length === 0 && <p class="dim">{t("definition.noHistory")}</p>}
      <ul>{list.map((v) => <li key={v.task}><Moment at={v.at} /> {v.by && t("event.by", { user: plain(v.by) })} <a href={href(`/tasks/${encodeURIComponent(v.task)}`)}>{v.task}</a></li>)}</ul>
      {known.length > 1 && (
        <>
          <div class="row">{select(t("definition.from"), Math.min(from, known.length - 1), setFrom)}{select(t("definition.to"), to, setTo)}</div>
          <Diff before={documentText(a.document)} after={documentText(b.document)} />
        </>
      )}
    </section>
  );
}

/** The difference of two texts. The sign of a line is not its colour alone. */
export function Diff({ before, after }: { before: string; after: string }) {
  const lines = diffLines(before, after);
  if (lines.every((l) => l.sign === " ")) return <p class="dim">{t("definition.equal")}</p>;
  return (
    <pre class="diff" tabIndex={0}>
      {lines.map((l, i) => <div key={i} class={l.sign === "+" ? "diff-new" : l.sign === "-" ? "diff-old" : ""}>{l.sign} {plain(l.text)}</div>)}
    </pre>
  );
}
