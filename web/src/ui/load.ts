// Loading from the server with the states that a page shows.
import { useEffect, useRef, useState } from "preact/hooks";
import { background, Failure } from "../api.ts";
import { connection } from "../live/stream.ts";
import { language } from "../words.ts";

export interface Loaded<T> {
  data: T | undefined; // the last answer, also while a newer one is on its way
  failure: Failure | undefined;
  loading: boolean;
  reload: () => void; // a look of the page itself, such as after news: it does not keep the session from going idle
}

/** Loads again when one of the keys changes, and every `every` milliseconds if that is given. An undefined load waits. */
export function useLoad<T>(load: ((signal: AbortSignal) => Promise<T>) | undefined, keys: unknown[], every = 0): Loaded<T> {
  const [data, setData] = useState<T>();
  const [failure, setFailure] = useState<Failure>();
  const [loading, setLoading] = useState(true);
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const looked = useRef(0); // the round that was loaded last

  // What failed because the server did not answer is asked again when it is back.
  const back = connection.value === "live";
  useEffect(() => { if (back && failure && (failure.status === 0 || failure.status > 501)) setRound((n) => n + 1); }, [back]);

  useEffect(() => {
    if (!latest.current) return;
    const stop = new AbortController();
    let timer = 0;
    let asked = looked.current === round; // by a person, who opened the page or changed what it shows
    looked.current = round;
    const run = async () => {
      setLoading(true);
      try {
        const signal = asked ? stop.signal : background(stop.signal);
        asked = false;
        const got = await latest.current!(signal);
        if (stop.signal.aborted) return;
        setData(() => got);
        setFailure(undefined);
      } catch (err) {
        if (stop.signal.aborted) return;
        setFailure(err instanceof Failure ? err : new Failure(0, { message: String(err) }));
      }
      setLoading(false);
      if (every) timer = window.setTimeout(() => { void run(); }, every);
    };
    void run();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [...keys, round, language.value]); // the server says messages in the language of the page

  return { data, failure, loading, reload: () => setRound((n) => n + 1) };
}
