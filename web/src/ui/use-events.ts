// Events of a page: those that the server has kept, and those that come while the page is open.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api.ts";
import type { Event as FleetEvent, EventPage } from "../api-types.ts";
import { listen } from "../live/stream.ts";
import { language } from "../words.ts";
import { useLoad, type Loaded } from "./load.ts";

type Heard = { language: string; event: FleetEvent };

/**
 * The events that fit a question to the server, oldest first, `most` at most. Messages are in the language of the page:
 * after a change of it the kept events are read again, and those that were heard before it are dropped.
 */
export function useEvents(query: Record<string, string | number>, most: number, mine: (e: FleetEvent) => boolean): Loaded<EventPage> & { events: FleetEvent[] } {
  const key = JSON.stringify(query);
  const loaded = useLoad((signal) => get<EventPage>("/events", query, signal), [key]);
  const [fresh, setFresh] = useState<Heard[]>([]);
  useEffect(() => {
    setFresh([]);
    return listen("events", (list) => {
      const heard = list.filter(mine).map((event) => ({ language: language.peek(), event }));
      if (heard.length) setFresh((before) => [...before, ...heard].slice(-most));
    });
  }, [key]);

  // What was heard while the page spoke another language is among the kept ones.
  const spoken = language.value;
  const seen = new Set<number>();
  const events = [...(loaded.data?.events ?? []), ...fresh.filter((h) => h.language === spoken).map((h) => h.event)]
    .filter((e) => mine(e) && !seen.has(e.id) && seen.add(e.id)).slice(-most);
  return { ...loaded, events };
}
