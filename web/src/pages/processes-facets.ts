// How many rows each chip would show: those that fit every other part of the filter.
import { decide, hasWords, type Filter } from "../live/filter.ts";
import { flagManaged, type Table } from "../live/table.ts";

export interface Facets {
  states: Map<string, number>;
  managed: [no: number, yes: number];
  bizs: Map<string, number>;
  sets: Map<string, number>;
  modules: Map<string, number>;
  hosts: Map<string, number>;
  clouds: Map<string, number>;
}

const bitState = 1, bitManaged = 2, bitBiz = 4, bitSet = 8, bitModule = 16, bitHost = 32, bitCloud = 64;

/** Counts all facets in one pass. A row that fails exactly one of them counts for that one. */
export function facetsOf(t: Table, f: Filter, only: Uint8Array | null): Facets {
  const rest = decide(t, { ...f, states: [], managed: undefined, bizs: [], sets: [], modules: [], hosts: [], clouds: [] });
  const part = (p: Partial<Filter>) => decide(t, { ...f, words: [], names: [], spaces: [], states: [], bizs: [], sets: [], modules: [], hosts: [], clouds: [], managed: undefined, stale: undefined, ...p });
  const fails = (n: number, marks: [Uint8Array | null, number][]) => {
    const out = new Uint8Array(n);
    for (const [m, bit] of marks) if (m) for (let i = 0; i < n; i++) if (!m[i]) out[i] |= bit;
    return out;
  };
  const stateFails = fails(t.states.length, [[part({ states: f.states }).states, bitState]]);
  const placeFails = fails(t.places.length, [[part({ bizs: f.bizs }).places, bitBiz], [part({ sets: f.sets }).places, bitSet], [part({ modules: f.modules }).places, bitModule]]);
  const hostFails = fails(t.hosts.ip.length, [[part({ hosts: f.hosts }).hosts, bitHost], [part({ clouds: f.clouds }).hosts, bitCloud]]);

  const states = new Uint32Array(t.states.length), managed: [number, number] = [0, 0];
  const places = { [bitBiz]: new Uint32Array(t.places.length), [bitSet]: new Uint32Array(t.places.length), [bitModule]: new Uint32Array(t.places.length) };
  const hosts = { [bitHost]: new Uint32Array(t.hosts.ip.length), [bitCloud]: new Uint32Array(t.hosts.ip.length) };
  const allPlaces = new Uint32Array(t.places.length), allHosts = new Uint32Array(t.hosts.ip.length);
  for (let id = 0; id < t.top; id++) {
    const state = t.state[id];
    if (state === 255) continue;
    if ((t.flags[id] & rest.flagMask) !== rest.flagValue) continue;
    if (rest.names && !rest.names[t.name[id]]) continue;
    if (rest.words && !hasWords(rest.words, t, id)) continue;
    if (only && !only[id]) continue;

    const is = t.flags[id] & flagManaged, place = t.place[id], host = t.host[id];
    const failed = stateFails[state] | placeFails[place] | hostFails[host] | (f.managed === undefined || f.managed === (is === 1) ? 0 : bitManaged);
    if (failed === 0) {
      states[state]++;
      managed[is]++;
      allPlaces[place]++;
      allHosts[host]++;
    } else if (failed === bitState) states[state]++;
    else if (failed === bitManaged) managed[is]++;
    else if (failed === bitHost || failed === bitCloud) hosts[failed][host]++;
    else if (failed === bitBiz || failed === bitSet || failed === bitModule) places[failed][place]++;
  }

  const sum = (all: Uint32Array, own: Uint32Array, name: (i: number) => string) => {
    const out = new Map<string, number>();
    for (let i = 0; i < all.length; i++) {
      const n = all[i] + own[i], key = n ? name(i) : "";
      if (key) out.set(key, (out.get(key) ?? 0) + n);
    }
    return out;
  };
  return {
    states: new Map(t.states.map((s, i) => [s, states[i]])), managed,
    bizs: sum(allPlaces, places[bitBiz], (i) => t.places[i][1] || (t.places[i][0] ? String(t.places[i][0]) : "")),
    sets: sum(allPlaces, places[bitSet], (i) => t.places[i][2]),
    modules: sum(allPlaces, places[bitModule], (i) => t.places[i][3]),
    hosts: sum(allHosts, hosts[bitHost], (i) => t.hosts.ip[i] || t.hosts.agent[i]),
    clouds: sum(allHosts, hosts[bitCloud], (i) => String(t.hosts.cloud[i])),
  };
}
