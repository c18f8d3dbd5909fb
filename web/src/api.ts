// Requests to the server, with the session's cookie.
import { signal } from "@preact/signals";
import type { ErrorDetail } from "./api-types.ts";
import { t } from "./words.ts";

/** What the user may do somewhere; the page hides the rest. */
export interface Can {
  admin: boolean;
  see_all: boolean;
  operate: boolean;
  define: boolean;
  enrol: boolean;
  audit: boolean;
  users: boolean;
  approve: boolean;
  topology: boolean;
}

/** The session of a browser, as GET /api/v1/session answers it. */
export interface Session {
  user: string;
  app?: string; // that the session acts as
  id: string;
  csrf: string;
  created: string | null;
  expires: string | null;
  idle_seconds: number;
  can?: Can;
}

/** The session of this browser; null: signed out; undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined);

/** A request that failed, in words for people. */
export class Failure extends Error {
  status: number;
  kind: string;
  faults: NonNullable<ErrorDetail["faults"]>;
  request: string;

  constructor(status: number, detail: Partial<ErrorDetail>) {
    super(detail.message || t("error.network"));
    this.status = status;
    this.kind = detail.kind ?? "unavailable";
    this.faults = detail.faults ?? [];
    this.request = detail.request_id ?? "";
  }
}

/** Signals of requests that the page sends by itself: they do not keep a session from going idle. */
const unasked = new WeakSet<AbortSignal>();

/** A signal for a request that nobody asked for, such as the next look of a poll. It ends with the given one. */
export function background(signal: AbortSignal): AbortSignal {
  const s = AbortSignal.any([signal]);
  unasked.add(s);
  return s;
}

type Query = Record<string, string | number | boolean | undefined | readonly (string | number)[]>;

export function address(path: string, query?: Query): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query ?? {})) {
    if (v === undefined || v === "") continue;
    for (const one of Array.isArray(v) ? v : [v]) q.append(k, String(one));
  }
  const text = q.toString();
  return "/api/v1" + path + (text ? `?${text}` : "");
}

/** Sends a request and returns the answer as it is. A status that says failure is thrown as Failure. */
export async function send(method: string, path: string, o: { query?: Query; body?: unknown; yaml?: string; key?: string; signal?: AbortSignal; accept?: string; proves?: boolean } = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: o.accept ?? "application/json", "Accept-Language": document.documentElement.lang };
  if (method !== "GET" && session.value) headers["X-Gozzard-CSRF"] = session.value.csrf;
  if (path.startsWith("/live/") || (o.signal && unasked.has(o.signal))) headers["X-Gozzard-Background"] = "1";
  let body: BodyInit | undefined;
  if (o.body !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(o.body);
  } else if (o.yaml !== undefined) { // a document as it was written
    headers["Content-Type"] = "application/yaml";
    body = o.yaml;
  }
  if (o.key) headers["Idempotency-Key"] = o.key; // the same request again is the same task

  let answer: Response;
  try {
    answer = await fetch(address(path, o.query), { method, headers, body, signal: o.signal, credentials: "same-origin", cache: "no-store" });
  } catch (err) {
    if (o.signal?.aborted) throw err;
    throw new Failure(0, {});
  }
  if (answer.ok) return answer;

  const detail = await answer.json().then((v) => v?.error as ErrorDetail, () => undefined);
  if (answer.status === 401 && !o.proves && session.value && detail?.kind !== "code_required") session.value = null;
  throw new Failure(answer.status, detail ?? { message: `${answer.status} ${answer.statusText}` });
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return (await send("GET", path, { query, signal })).json();
}

export async function post<T>(path: string, body?: unknown, query?: Query): Promise<T> {
  return (await send("POST", path, { body, query })).json();
}

export async function put<T>(path: string, body?: unknown, query?: Query): Promise<T> {
  return (await send("PUT", path, { body, query })).json();
}

export async function del<T>(path: string, body?: unknown, query?: Query): Promise<T> {
  return (await send("DELETE", path, { body, query })).json();
}

/** A change that carries the password of the user: a refusal means a wrong password, not the end of the session. */
export async function prove<T>(method: string, path: string, body: unknown): Promise<T> {
  return (await send(method, path, { body, proves: true })).json();
}

/** Reads the session of the cookie, if there is one. */
export async function readSession(signal?: AbortSignal): Promise<void> {
  try {
    session.value = await get<Session>("/session", undefined, signal);
  } catch (err) {
    if (err instanceof Failure && (err.status === 401 || err.status === 403)) session.value = null;
    else throw err;
  }
}

/** Whether the user may do a kind of thing somewhere. */
export function may(what: keyof Can): boolean {
  return session.value?.can?.[what] ?? false;
}
