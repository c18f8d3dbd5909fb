// The fields of the form of a definition. The form changes a document in place: what it has no field for stays as it is.
export type Document = Record<string, unknown>;

export type FieldKind = "text" | "lines" | "number" | "flag" | "choice" | "pairs" | "list";

export interface FieldDef {
  path: string; // such as restart.delay
  kind: FieldKind;
  choices?: string[];
  example?: string;
  wide?: boolean;
}

const field = (path: string, kind: FieldKind, example = "", more: Partial<FieldDef> = {}): FieldDef => ({ path, kind, example, ...more });
const choice = (path: string, ...choices: string[]): FieldDef => ({ path, kind: "choice", choices });

/** The groups of the form. The first is open; the others open when they have a value. */
export const groups = {
  basics: [
    field("namespace", "text", "default"), field("name", "text", "web"),
    field("command", "lines", "python3 -m http.server 9000", { wide: true }),
    field("folder", "text", "/opt/web"), field("user", "text", "www-data"), field("proc_name", "text", "python3"), field("pid_file", "text", "/run/web.pid"),
  ],
  restart: [choice("restart.policy", "always", "on-failure", "never"), field("restart.max", "number", "10"), field("restart.delay", "text", "10s"), field("restart.quick", "number", "4")],
  schedule: [field("schedule", "text", "*/5 * * * *"), field("time_zone", "text", "Asia/Shanghai"), choice("overlap", "skip", "kill")],
  stop: [field("stop", "lines", "./stop.sh", { wide: true }), field("stop_signal", "text", "TERM"), field("stop_timeout", "text", "10s"), field("start_check", "text", "5s"), field("timeout", "text", "60s"), choice("orphans", "kill", "wait")],
  commands: [field("reload", "lines", "kill -HUP $(cat web.pid)"), field("restart_command", "lines", "./restart.sh"), field("kill", "lines", "./kill.sh"), field("version", "lines", "./web --version")],
  limits: [field("memory", "text", "512M"), field("cpu", "text", "1.5"), field("limits.files", "number", "4096"), field("limits.disk", "text", "10G"), choice("limits.act", "alert", "stop", "kill", "restart"), field("limits.enforce", "flag")],
  health: [field("health.command", "lines", "./check.sh"), field("health.http", "text", "http://127.0.0.1:8080/ping"), field("health.tcp", "text", "6379"), field("health.interval", "text", "30s"), field("health.timeout", "text", "10s"), field("health.failures", "number", "3"), field("health.restart", "flag")],
  environment: [field("env", "pairs", "MODE=prod", { wide: true }), field("env_file", "text", "/etc/default/web"), field("group", "text", "adm"), field("umask", "text", "0022"), field("nice", "number", "0"), field("after", "list", "redis"), field("instances", "number", "4"), field("labels", "pairs", "tier=front", { wide: true })],
  logs: [field("logs.size", "text", "10M"), field("logs.keep", "number", "5"), field("logs.age", "text", "168h"), field("log_file", "text", "/var/log/web.log")],
} satisfies Record<string, FieldDef[]>;

export type Group = keyof typeof groups;

/** A part that may be written as one word is the value of this key in it. */
function opened(doc: Document, part: string): Document {
  const v = doc[part];
  if (v !== null && typeof v === "object" && !Array.isArray(v)) return v as Document;
  if (v === undefined || v === null) return {};
  if (part === "restart") return { policy: v };
  if (part !== "health") return {};
  if (typeof v === "string" && /^https?:\/\//.test(v)) return { http: v };
  if (typeof v === "string" && v.startsWith("tcp://")) return { tcp: v.slice(6) };
  return { command: v };
}

/** The value of a path in a document. */
export function read(doc: Document, path: string): unknown {
  const [part, key] = path.split(".");
  return key === undefined ? doc[part] : opened(doc, part)[key];
}

/** The document with another value. undefined removes it, and a part that is empty then. The order of keys stays. */
export function write(doc: Document, path: string, value: unknown): Document {
  const [part, key] = path.split(".");
  if (key !== undefined) {
    const inside = { ...opened(doc, part) };
    if (value === undefined) delete inside[key];
    else inside[key] = value;
    return write(doc, part, Object.keys(inside).length ? inside : undefined);
  }
  const out = { ...doc };
  if (value === undefined) delete out[part];
  else out[part] = value;
  return out;
}

/** The text that a field shows; null: the field cannot show the value, and it is edited as YAML. */
export function show(kind: FieldKind, value: unknown): string | null {
  if (value === undefined || value === null) return "";
  switch (kind) {
    case "pairs": {
      if (typeof value !== "object" || Array.isArray(value)) return null;
      const list = Object.entries(value as Document);
      return list.some(([k, v]) => k.includes("\n") || typeof v === "object" || String(v).includes("\n")) ? null : list.map(([k, v]) => `${k}=${String(v)}`).join("\n");
    }
    case "list":
      return Array.isArray(value) && value.every((v) => typeof v === "string" && !v.includes(",")) ? value.join(", ") : null;
    default:
      return typeof value === "object" ? null : String(value);
  }
}

/** The value of a text that was typed into a field; undefined for an empty one. */
export function parse(kind: FieldKind, text: string): unknown {
  if (text.trim() === "") return undefined;
  switch (kind) {
    case "number":
      return /^-?\d{1,15}$/.test(text.trim()) ? Number(text.trim()) : text; // the server says what is wrong with a text
    case "list":
      return text.split(",").map((s) => s.trim()).filter(Boolean);
    case "pairs":
      return Object.fromEntries(text.split("\n").filter((l) => l.trim() !== "").map((l) => {
        const at = l.indexOf("=");
        return at < 0 ? [l.trim(), ""] : [l.slice(0, at).trim(), l.slice(at + 1)];
      }));
    default:
      return text;
  }
}

/** Whether a fault belongs to a field: to its value or to something in it. */
export function belongs(fault: string, path: string): boolean {
  if (fault === path || fault.startsWith(`${path}[`) || fault.startsWith(`${path}.`)) return true;
  const [part, key] = path.split(".");
  return key !== undefined && fault === part && (key === "policy" || key === "command");
}

export function allPaths(): string[] {
  return Object.values(groups).flatMap((list) => (list as FieldDef[]).map((f) => f.path));
}
