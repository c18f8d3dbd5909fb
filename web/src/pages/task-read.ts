// Reads one task while it runs. The stream says that something changed; the task is then read again, at most once a
// second, and less often if it is large.
import { useEffect, useState } from "preact/hooks";
import { Failure, get } from "../api.ts";
import type { Counts, Task } from "../api-types.ts";
import { connection, listen } from "../live/stream.ts";
import { pause, sample, type Sample } from "./task-model.ts";

export interface Reading {
  task: Task | undefined; // the last answer, also while the server does not answer
  counts: Counts | undefined; // newer than the task's, when the stream has sent them
  samples: Sample[];
  failure: Failure | undefined; // of the last try
  at: number; // when the task was read
}

const unheard = 10_000; // without a word about the task it is read this often all the same
const unheardOff = 2000; // the same without a stream

export function useTask(id: string): Reading {
  const [reading, setReading] = useState<Reading>({ task: undefined, counts: undefined, samples: [], failure: undefined, at: 0 });

  useEffect(() => {
    const stop = new AbortController();
    let timer = 0, due = 0, dirty = false, reading = false, final = false, failures = 0;

    const plan = (ms: number) => {
      if (final || stop.signal.aborted) return;
      clearTimeout(timer);
      timer = window.setTimeout(() => { void read(); }, ms);
    };
    const read = async () => {
      if (reading) return;
      reading = true;
      dirty = false;
      const began = Date.now();
      try {
        const task = await get<Task>(`/tasks/${encodeURIComponent(id)}`, { show: "all" }, stop.signal);
        failures = 0;
        final = task.final;
        const now = Date.now();
        due = now + pause(now - began, task.counts.targets);
        setReading((r) => ({ task, counts: undefined, failure: undefined, at: now,
          samples: sample(r.samples, { at: now, ended: task.counts.done + task.counts.failed }) }));
      } catch (err) {
        if (stop.signal.aborted) return;
        const failure = err instanceof Failure ? err : new Failure(0, { message: String(err) });
        final = failure.status === 404 || failure.status === 401;
        due = Date.now() + Math.min(10_000, 1000 * 2 ** failures++);
        setReading((r) => ({ ...r, failure }));
      } finally {
        reading = false;
      }
      plan(dirty || failures ? due - Date.now() : connection.value === "live" ? unheard : unheardOff);
    };

    void read();
    const deaf = listen("tasks", (list) => {
      const mine = list.find((s) => s.task_id === id);
      if (!mine || final) return;
      const now = Date.now();
      setReading((r) => (r.task ? { ...r, counts: mine.counts, samples: sample(r.samples, { at: now, ended: mine.counts.done + mine.counts.failed }) } : r));
      dirty = true;
      if (!reading) plan(Math.max(0, due - now));
    });
    const deafToo = connection.subscribe((c) => { if (c === "live" && failures) plan(0); });
    return () => { stop.abort(); clearTimeout(timer); deaf(); deafToo(); };
  }, [id]);

  return reading;
}
