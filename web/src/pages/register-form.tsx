// The form of a definition. Faults stand beside their fields after a field was left.
import { useState } from "preact/hooks";
import { get } from "../api.ts";
import type { DefinitionFault, HostInfo, HostPage } from "../api-types.ts";
import { plain } from "../ui/format.ts";
import { Field, State } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { belongs, groups, parse, read, show, write, type Document, type FieldDef, type Group } from "./register-fields.ts";

interface Props {
  doc: Document;
  faults: DefinitionFault[];
  touched: ReadonlySet<string>;
  fixed: boolean; // namespace and name stay
  onChange: (doc: Document) => void;
  onTouch: (path: string) => void;
}

export function Form(props: Props) {
  return (
    <div class="stack">
      {(Object.keys(groups) as Group[]).map((g) => <GroupPart key={g} group={g} {...props} />)}
      <Hosts {...props} />
    </div>
  );
}

function GroupPart({ group, ...props }: Props & { group: Group }) {
  const list: FieldDef[] = groups[group];
  const [first] = useState(() => group === "basics" || list.some((f) => read(props.doc, f.path) !== undefined));
  const faulty = list.some((f) => props.touched.has(f.path) && props.faults.some((x) => belongs(x.path, f.path)));
  return (
    <details class="card form-group" open={first || faulty}>
      <summary><h2>{t(`definition.group.${group}`)}</h2></summary>
      <div class="form-fields">{list.map((f) => <OneField key={f.path} def={f} {...props} />)}</div>
    </details>
  );
}

function OneField({ def, doc, faults, touched, fixed, onChange, onTouch }: Props & { def: FieldDef }) {
  const value = read(doc, def.path);
  const shown = show(def.kind, value);
  const [typed, setTyped] = useState<string>(); // while the field has the focus: a list loses its last comma otherwise
  const own = touched.has(def.path) ? faults.find((f) => belongs(f.path, def.path)) : undefined;
  const change = (text: string) => { setTyped(text); onChange(write(doc, def.path, parse(def.kind, text))); };
  const leave = () => { setTyped(undefined); onTouch(def.path); };
  const label = t(`definition.field.${def.path}` as Parameters<typeof t>[0]);
  const readOnly = fixed && (def.path === "namespace" || def.path === "name" || def.path === "instances");

  return (
    <div class={def.wide ? "form-wide" : ""}>
      <Field label={label} hint={shown === null ? t("definition.asYaml", { value: JSON.stringify(value) }) : undefined} fault={own && plain(own.text)}>
        {(a) => {
          if (shown === null) return <input {...a} value="" disabled />;
          const text = typed ?? shown;
          const rest = { ...a, name: def.path, placeholder: def.example, readOnly, spellcheck: false, autocomplete: "off" as const, onBlur: leave };
          if (def.kind === "flag") return <input {...a} type="checkbox" checked={value === true} onChange={(e) => { onTouch(def.path); onChange(write(doc, def.path, e.currentTarget.checked || undefined)); }} />;
          if (def.kind === "choice") {
            return (
              <select {...a} value={text} onChange={(e) => { onTouch(def.path); onChange(write(doc, def.path, e.currentTarget.value || undefined)); }}>
                <option value="">{t("definition.byDefault")}</option>
                {text && !def.choices!.includes(text) && <option value={text}>{text}</option>}
                {def.choices!.map((c) => <option key={c} value={c}>{c}</option>)}
              </select>
            );
          }
          if (def.kind === "lines" || def.kind === "pairs") return <textarea {...rest} rows={Math.min(12, Math.max(def.wide ? 2 : 1, text.split("\n").length))} value={text} onInput={(e) => change(e.currentTarget.value)} />;
          return <input {...rest} inputMode={def.kind === "number" ? "numeric" : undefined} value={text} onInput={(e) => change(e.currentTarget.value)} />;
        }}
      </Field>
    </div>
  );
}

interface HostValue { agent?: string; ip?: string; cloud?: number }

const means = (v: HostValue, h: HostInfo) => v.agent === h.agent || h.addrs.some((a) => a.ip === v.ip && (v.cloud === undefined || a.cloud === v.cloud));

/** The hosts on which the process is defined. */
function Hosts({ doc, faults, touched, onChange, onTouch }: Props) {
  const hosts = useLoad((signal) => get<HostPage>("/hosts", { limit: 1000 }, signal), []);
  const [search, setSearch] = useState("");
  const chosen = Array.isArray(doc.hosts) ? (doc.hosts as HostValue[]) : [];
  const list = hosts.data?.hosts ?? [];
  const fits = list.filter((h) => `${h.hostname} ${h.agent} ${h.addrs.map((a) => a.ip).join(" ")}`.toLowerCase().includes(search.toLowerCase()));
  const unknown = chosen.filter((v) => !list.some((h) => means(v, h)));
  const fault = touched.has("hosts") ? faults.find((f) => belongs(f.path, "hosts") || f.path === "all") : undefined;
  const set = (h: HostInfo, on: boolean) => {
    const rest = chosen.filter((v) => !means(v, h));
    const next = on ? [...rest, h.addrs[0] ? { cloud: h.addrs[0].cloud, ip: h.addrs[0].ip } : { agent: h.agent }] : rest;
    onTouch("hosts");
    onChange(write(write(doc, "all", undefined), "hosts", next.length ? next : undefined));
  };
  return (
    <fieldset class="card form-hosts">
      <legend>{t("definition.hosts", { n: chosen.length })}</legend>
      {doc.all === true && <p class="note">{t("definition.allHosts")}</p>}
      {list.length > 10 && <input type="search" aria-label={t("definition.findHost")} placeholder={t("definition.findHost")} value={search} onInput={(e) => setSearch(e.currentTarget.value)} />}
      <ul class="form-host-list">
        {fits.slice(0, 200).map((h) => (
          <li key={h.agent}><label class="row">
            <input type="checkbox" checked={chosen.some((v) => means(v, h))} onChange={(e) => set(h, e.currentTarget.checked)} />
            <span class="mono">{h.addrs[0] ? `${h.addrs[0].cloud}:${h.addrs[0].ip}` : h.agent}</span> <bdi class="dim">{plain(h.hostname)}</bdi> {!h.online && <State of="unknown" />}
          </label></li>
        ))}
      </ul>
      {fits.length > 200 && <p class="dim">{t("definition.moreHosts", { n: fits.length - 200 })}</p>}
      {hosts.data && unknown.length > 0 && <p class="dim">{t("definition.otherHosts", { hosts: unknown.map((v) => v.ip ?? v.agent ?? "").join(", ") })}</p>}
      {fault && <p class="fault" role="alert">{plain(fault.text)}</p>}
    </fieldset>
  );
}
