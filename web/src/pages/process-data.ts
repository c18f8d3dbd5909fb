// What the page of a process knows: its instances, kept fresh by the live table, and the actions of other people.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.ts";
import type { DefinitionPage, Process, ProcessPage, TaskPage, TaskSummary } from "../api-types.ts";
import { beat, listen, table } from "../live/stream.ts";
import { useLoad, type Loaded } from "../ui/load.ts";

const pollEvery = 5000; // CPU and memory change without a change of state

/** A number that changes when an instance of the process comes, goes, or changes its state. */
function useStamp(space: string, name: string): string {
  beat.value;
  const t = table.value;
  if (!t) return "";
  const key = t.names.name.findIndex((n, i) => n === name && t.names.space[i] === space);
  if (key < 0) return "none";
  let sum = 0;
  for (let id = 0; id < t.top; id++) {
    if (t.name[id] !== key || !t.has(id)) continue;
    sum = (sum * 31 + id * 7 + t.state[id] * 101 + t.flags[id] * 1009 + t.pid[id] + t.restarts[id] * 13 + t.started[id]) % 0x1fffffffffff;
  }
  return String(sum);
}

export function useInstances(space: string, name: string): Loaded<Process[]> {
  const stamp = useStamp(space, name);
  return useLoad(async (signal) => {
    const page = await get<ProcessPage>("/processes", { namespace: space, name, limit: 1000 }, signal);
    const own = page.processes.filter((p) => p.namespace === space && p.name === name); // a name may look like a pattern
    return own.sort((a, b) => a.host.cloud - b.host.cloud || a.host.ip.localeCompare(b.host.ip, undefined, { numeric: true }));
  }, [space, name, stamp], pollEvery);
}

export function useDefinitions(space: string, name: string, version: unknown): Loaded<DefinitionPage> {
  return useLoad(async (signal) => {
    const page = await get<DefinitionPage>("/definitions", { namespace: space, name, effective: true, limit: 1000 }, signal);
    return { ...page, definitions: page.definitions.filter((d) => d.namespace === space && d.name === name) };
  }, [space, name, version]);
}

/** The tasks about a process that run now, also those of other people. ended grows when one has ended. */
export function useTasks(space: string, name: string): { running: TaskSummary[]; ended: number } {
  const [tasks, setTasks] = useState<Map<string, TaskSummary>>(new Map());
  const [ended, setEnded] = useState(0);
  const open = useRef(new Set<string>());
  useEffect(() => {
    const about = (t: TaskSummary) => t.processes.some((p) => p.namespace === space && p.name === name);
    const take = (list: TaskSummary[]) => {
      const mine = list.filter(about);
      if (mine.length === 0) return;
      if (mine.some((t) => t.final)) setEnded((n) => n + 1);
      setTasks((old) => {
        const next = new Map(old);
        for (const t of mine) {
          if (t.final) next.delete(t.task_id);
          else next.set(t.task_id, t);
        }
        open.current = new Set(next.keys());
        return next;
      });
    };
    get<TaskPage>("/tasks", { namespace: space, name, state: "running", limit: 10 }).then((p) => take(p.tasks), () => {});
    return listen("tasks", take);
  }, [space, name]);
  return { running: [...tasks.values()], ended };
}
