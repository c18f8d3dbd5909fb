// The log of a process: of one instance, or of several merged by time.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Failure, get } from "../api.ts";
import type { LogChunk, Process } from "../api-types.ts";
import { useActions } from "../keys.ts";
import { place, setQuery } from "../router.ts";
import { bytes, exact } from "../ui/format.ts";
import { Button, Empty, Problem } from "../ui/kit.tsx";
import { Cutter, mergeLines, searchLines, type LogLine } from "../ui/loglines.ts";
import { t } from "../words.ts";

const maxHosts = 20; // logs that are read at a time
const firstLines = 300; // of each instance
const drawn = 2000; // lines in the page
const pause = 1000; // between two requests for a log that has nothing new

export function hostName(p: Process): string {
  return p.host.ip ? `${p.host.cloud}:${p.host.ip}` : p.host.agent;
}

/** Chooses one instance, or all. The choice is in the address. */
export function HostChoice({ list, host }: { list: Process[]; host: string }) {
  return (
    <label class="row host-choice">{t("process.host")}
      <select value={host} onChange={(e) => setQuery({ host: e.currentTarget.value })}>
        <option value="">{t("process.allHosts", { n: list.length })}</option>
        {list.map((p) => <option key={p.host.agent} value={p.host.agent}>{hostName(p)}</option>)}
      </select>
    </label>
  );
}

/** Reads the logs of hosts until it is stopped. While it is paused, nothing is read; the agents keep what comes. */
function useLog(space: string, name: string, agents: string[], paused: boolean) {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [failures, setFailures] = useState<Map<string, Failure>>(new Map());
  const [ready, setReady] = useState(false);
  const offsets = useRef(new Map<string, number>());
  const cutters = useRef(new Map<string, Cutter>());
  const key = agents.join(" ");

  useEffect(() => {
    offsets.current = new Map();
    cutters.current = new Map();
    setLines([]);
    setFailures(new Map());
    setReady(false);
  }, [space, name, key]);

  useEffect(() => {
    if (paused) return;
    const stop = new AbortController();
    let timer = 0;
    const readOne = async (agent: string): Promise<LogLine[]> => {
      const at = offsets.current.get(agent);
      const chunk = await get<LogChunk>("/logs", { namespace: space, name, host: agent, lines: at === undefined ? firstLines : 1000, offset: at }, stop.signal);
      offsets.current.set(agent, Math.max(0, chunk.next));
      let cutter = cutters.current.get(agent);
      if (!cutter) cutters.current.set(agent, cutter = new Cutter(agent));
      return cutter.add(chunk.text, Date.now(), at !== undefined && at > 0 ? Math.max(0, chunk.offset - at) : 0);
    };
    const round = async () => {
      const results = await Promise.allSettled(agents.map(readOne));
      if (stop.signal.aborted) return;
      const failed = new Map<string, Failure>();
      const more: LogLine[] = [];
      results.forEach((r, i) => {
        if (r.status === "fulfilled") more.push(...r.value);
        else failed.set(agents[i], r.reason instanceof Failure ? r.reason : new Failure(0, { message: String(r.reason) }));
      });
      setFailures(failed);
      setReady(true);
      if (more.length) setLines((old) => mergeLines(old, more));
      timer = window.setTimeout(() => { void round(); }, document.hidden ? pause * 5 : pause);
    };
    void round();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [space, name, key, paused]);

  return { lines, failures, ready };
}

export function LogTab({ space, name, list, host }: { space: string; name: string; list: Process[]; host: string }) {
  const chosen = host ? list.filter((p) => p.host.agent === host) : list.slice(0, maxHosts);
  const agents = chosen.map((p) => p.host.agent);
  const names = new Map(chosen.map((p) => [p.host.agent, hostName(p)]));
  const [paused, setPaused] = useState(false);
  const log = useLog(space, name, agents, paused);
  const search = place.value.query.get("q") ?? "";
  const [atEnd, setAtEnd] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const found = useMemo(() => searchLines(log.lines, search), [log.lines, search]);
  const shown = found.slice(-drawn);

  useLayoutEffect(() => {
    if (atEnd && !paused && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, atEnd, paused]);
  useActions([{ label: t("log.pauseOrFollow"), keys: "p", run: () => setPaused((v) => !v) }], []);

  const failure = [...log.failures.values()][0];
  return (
    <div class="stack">
      <div class="row log-tools">
        {list.length > 1 && <HostChoice list={list} host={host} />}
        <input type="search" aria-label={t("log.search")} placeholder={t("log.search")} value={search} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        <Button aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? t("log.follow") : t("log.pause")}</Button>
        <Button onClick={() => { void download(space, name, agents, names); }}>{t("log.download")}</Button>
        <span class="dim" role="status">{search ? t("log.found", { n: found.length, all: log.lines.length }) : t("log.lines", { n: log.lines.length })} {paused ? t("log.paused") : t("log.following")}</span>
      </div>
      {!host && list.length > maxHosts && <p class="note">{t("log.tooMany", { n: maxHosts, all: list.length })}</p>}
      {failure && <Problem of={failure} />}
      {log.ready && log.lines.length === 0 && !failure && <Empty title={t("log.empty")}><p>{t("log.emptyHint")}</p></Empty>}
      {log.lines.length > 0 && (
        <div class="log" ref={box} tabIndex={0} role="region" aria-label={t("process.tab.log")}
          onScroll={(e) => { const b = e.currentTarget; setAtEnd(b.scrollTop + b.clientHeight >= b.scrollHeight - 24); }}>
          {shown.map((l) => (
            <div key={`${l.host} ${l.id}`} class="log-line" title={exact(l.at)}>
              {l.gap && <span class="log-gap">{t("log.gap", { size: bytes(l.gap) })}</span>}
              {agents.length > 1 && <span class={`log-host log-host-${agents.indexOf(l.host) % 6}`}>{names.get(l.host)} </span>}
              <Marked text={l.text} find={search} />
            </div>
          ))}
        </div>
      )}
      {!atEnd && !paused && <Button onClick={() => setAtEnd(true)}>{t("log.toEnd")}</Button>}
    </div>
  );
}

/** A line with the text that was searched for. */
function Marked({ text, find }: { text: string; find: string }) {
  if (!find) return <bdi>{text}</bdi>;
  const parts: preact.ComponentChildren[] = [];
  const low = text.toLowerCase(), want = find.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(want); at >= 0 && parts.length < 200; at = low.indexOf(want, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + find.length)}</mark>);
    from = at + find.length;
  }
  return <bdi>{parts}{text.slice(from)}</bdi>;
}

/** Saves up to 10,000 lines of each instance as a file. */
async function download(space: string, name: string, agents: string[], names: Map<string, string>): Promise<void> {
  const parts: string[] = [];
  for (const agent of agents) {
    try {
      const chunk = await get<LogChunk>("/logs", { namespace: space, name, host: agent, lines: 10000 });
      parts.push(agents.length > 1 ? chunk.text.replace(/^(?=[^])/gm, `${names.get(agent)} `) : chunk.text);
    } catch (err) {
      parts.push(`# ${names.get(agent)}: ${err instanceof Error ? err.message : String(err)}\n`);
    }
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
  link.download = `${space}-${name}.log`.replace(/[^\p{L}\p{N}._-]/gu, "_");
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

