// Builds an expression of five fields, with completion, and shows at once what it matches.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Failure, get, may, send } from "../api.ts";
import type { ProcessPage } from "../api-types.ts";
import { emptyFilter, formatFilter } from "../live/filter.ts";
import { table } from "../live/stream.ts";
import { href, place, setQuery } from "../router.ts";
import { openAction, type ActionName } from "../ui/action.tsx";
import { Button, Command, Field, Problem, State, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";
import { Size } from "./business-counts.tsx";
import { complete, everything, fieldNames, joinExpression, namesOf, splitExpression, type Fields, type Names } from "./business-model.ts";

const pause = 250; // after a key, before the server is asked
const readEvery = 5000;
const page = 200;
const shownRows = 50;
const actions: ActionName[] = ["start", "stop", "restart", "reload"];

export function Builder({ biz, version }: { biz: number; version: number }) {
  const text = place.value.query.get("e") ?? "";
  const fields = splitExpression(text);
  const [used, setUsed] = useState(text !== ""); // completion reads the document when it is first needed
  const doc = useLoad(used ? async (s) => namesOf(await (await send("GET", `/topology/${biz}`, { signal: s })).json()) : undefined, [biz, version, used]);

  const change = (at: number, value: string) => {
    const next = [...fields] as Fields;
    next[at] = value;
    const e = joinExpression(next);
    setQuery({ e: e === joinExpression(everything) ? "" : e });
  };
  return (
    <section class="card stack" aria-label={t("expr.title")} onFocusIn={() => setUsed(true)}>
      <div class="row"><h2>{t("expr.title")}</h2>{text && <code class="text">{text}</code>}{text && <Button kind="quiet" onClick={() => setQuery({ e: "" })}>{t("expr.clear")}</Button>}</div>
      <div class="biz-fields">{fieldNames.map((f, i) => <One key={f} at={i} fields={fields} names={doc.data ?? []} onChange={(v) => change(i, v)} />)}</div>
      <p class="hint">{t("expr.hint")}</p>
      {text && <Matches biz={biz} expression={text} />}
    </section>
  );
}

function One({ at, fields, names, onChange }: { at: number; fields: Fields; names: readonly Names[]; onChange: (v: string) => void }) {
  const name = fieldNames[at];
  const shown = fields[at] === "*" ? "" : fields[at].replaceAll("\\.", ".");
  const [typed, setTyped] = useState(shown);
  const [asked, setAsked] = useState(shown);
  useEffect(() => { if (shown !== asked) { setTyped(shown); setAsked(shown); } }, [shown]);
  useEffect(() => {
    if (typed === asked) return;
    const timer = setTimeout(() => { setAsked(typed); onChange(typed); }, pause);
    return () => clearTimeout(timer);
  }, [typed]);

  const offered = useMemo(() => complete(names, fields.map((f, i) => (i === at ? typed || "*" : f)), at), [names, typed, fields.join("\u0000")]);
  return (
    <Field label={t(`expr.${name}`)}>{(a) => (
      <>
        <input {...a} type="text" list={`names-${name}`} placeholder="*" maxLength={1000} autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        <datalist id={`names-${name}`}>{offered.map((o) => <option key={o} value={o} />)}</datalist>
      </>
    )}</Field>
  );
}

/** Reads what an expression matches. The instances of many processes are counted in the live table. */
async function match(biz: number, expression: string, signal: AbortSignal): Promise<ProcessPage & { instances?: number }> {
  const found = await get<ProcessPage>("/processes", { biz, expression, limit: page }, signal);
  if (!found.next) return { ...found, instances: found.processes.length };
  const epoch = table.value?.epoch;
  if (!epoch) return found;
  try {
    const rows = await send("GET", "/live/match", { query: { epoch, expression, biz }, accept: "application/octet-stream", signal });
    return { ...found, instances: (await rows.arrayBuffer()).byteLength / 4 };
  } catch (err) {
    if (err instanceof Failure) return found; // such as a table that is just being read again
    throw err;
  }
}

function Matches({ biz, expression }: { biz: number; expression: string }) {
  const found = useLoad((s) => match(biz, expression, s), [biz, expression], readEvery);
  const filter = formatFilter({ ...emptyFilter(), bizs: [String(biz)], expression });
  if (found.failure) return <Problem of={found.failure} />;
  if (!found.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const { count, processes, instances } = found.data;
  const quoted = `'${expression.replaceAll("'", `'\\''`)}'`;
  return (
    <>
      <div class="row">
        <strong role="status">{count === 0 ? t("expr.nothing") : <>{t("expr.matches")} <Size p={count} i={instances} /></>}</strong>
        {count > 0 && <a class="button" href={href("/processes", { f: filter })}>{t("expr.show")}</a>}
        {count > 0 && may("operate") && actions.map((a) => <Button key={a} onClick={() => openAction({ action: a, selection: { biz, expression } })}>{tOf("action.", a)}</Button>)}
      </div>
      {count > 0 && (
        <details>
          <summary>{t("expr.rows", { n: Math.min(shownRows, processes.length) })}</summary>
          <div class="scroll biz-matches" tabIndex={0} role="region" aria-label={t("expr.title")}>
            <table>
              <thead><tr>{(["expr.process1", "expr.host", "expr.state", "expr.place"] as const).map((w) => <th key={w} scope="col">{t(w)}</th>)}</tr></thead>
              <tbody>
                {processes.slice(0, shownRows).map((p, i) => (
                  <tr key={i}>
                    <td><a href={href(`/process/${encodeURIComponent(p.namespace)}/${encodeURIComponent(p.name)}`)}><Text of={p.name} /></a></td>
                    <td>{p.host.cloud}:{p.host.ip}</td>
                    <td><State of={p.state} /></td>
                    <td><Text of={[p.topology?.set_name, p.topology?.module_name, p.topology?.service_name].join(" / ")} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="dim">{t("expr.command")}</p>
          <Command text={`gozzard ps --biz ${biz} -e ${quoted}`} />
        </details>
      )}
    </>
  );
}
