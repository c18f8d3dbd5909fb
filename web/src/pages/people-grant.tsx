// Grants in words and in a form.
import { useState } from "preact/hooks";
import type { Grant } from "../api-types.ts";
import { Field, Text } from "../ui/kit.tsx";
import { t, tOf, type Word } from "../words.ts";

export const roles = ["viewer", "operator", "admin", "enroller"] as const;
export const grantActions = ["start", "stop", "restart", "reload", "kill", "host", "unhost", "register", "update", "unregister"] as const;

/** A grant as a sentence. */
export function GrantText({ of }: { of: Grant }) {
  const parts: string[] = [];
  const add = (word: Word, list: readonly (string | number)[] | undefined) => { if (list?.length) parts.push(t(word, { list: list.join(", ") })); };
  add("grant.businesses", of.businesses);
  add("grant.namespaces", of.namespaces);
  add("grant.clouds", of.clouds);
  add("grant.nets", of.nets);
  add("grant.actions", of.actions);
  add("grant.accounts", of.accounts);
  if (of.hosts === "any") parts.push(t("grant.anyHost"));
  return <span><strong>{tOf("role.", of.role)}</strong> <Text of={parts.length ? parts.join("; ") : t("grant.everything")} /></span>;
}

const words = (s: string) => s.split(/[\s,]+/).filter(Boolean);

/** The fields of a grant. It calls onChange with the grant, or with undefined while something is wrong. */
export function GrantForm({ onChange, optional }: { onChange: (g: Grant | undefined) => void; optional?: boolean }) {
  const [f, setF] = useState({ role: optional ? "" : "viewer", scope: "all", scopeText: "", nets: "", clouds: "", actions: "", accounts: "" });
  const set = (change: Partial<typeof f>) => {
    const next = { ...f, ...change };
    setF(next);
    onChange(grantOf(next));
  };
  return (
    <>
      <Field label={t("grant.role")} hint={f.role ? tOf("role.text.", f.role) : undefined}>
        {(a) => (
          <select {...a} value={f.role} onChange={(e) => set({ role: e.currentTarget.value })}>
            {optional && <option value="">{t("grant.later")}</option>}
            {roles.map((r) => <option key={r} value={r}>{t(`role.${r}`)}</option>)}
          </select>
        )}
      </Field>
      {f.role !== "" && <>
        {f.role !== "enroller" && (
          <Field label={t("grant.scope")}>
            {(a) => (
              <select {...a} value={f.scope} onChange={(e) => set({ scope: e.currentTarget.value, scopeText: "" })}>
                <option value="all">{t("grant.scope.all")}</option>
                <option value="biz">{t("grant.scope.biz")}</option>
                <option value="namespace">{t("grant.scope.namespace")}</option>
              </select>
            )}
          </Field>
        )}
        {f.role !== "enroller" && f.scope !== "all" && (
          <Field label={f.scope === "biz" ? t("grant.scope.biz.list") : t("grant.scope.namespace.list")} hint={f.scope === "namespace" ? t("grant.scope.namespace.hint") : undefined}>
            {(a) => <input {...a} type="text" required value={f.scopeText} placeholder={f.scope === "biz" ? "2, 3" : "shop-*"} onInput={(e) => set({ scopeText: e.currentTarget.value })} />}
          </Field>
        )}
        <Field label={t("grant.form.nets")} hint={t("grant.form.nets.hint")}>{(a) => <input {...a} type="text" value={f.nets} placeholder="10.1.0.0/16" onInput={(e) => set({ nets: e.currentTarget.value })} />}</Field>
        <Field label={t("grant.form.clouds")}>{(a) => <input {...a} type="text" value={f.clouds} onInput={(e) => set({ clouds: e.currentTarget.value })} />}</Field>
        {f.role === "operator" && <Field label={t("grant.form.actions")} hint={t("grant.form.actions.hint")}>{(a) => <input {...a} type="text" value={f.actions} placeholder="start, restart" onInput={(e) => set({ actions: e.currentTarget.value })} />}</Field>}
        {(f.role === "operator" || f.role === "admin") && <Field label={t("grant.form.accounts")} hint={t("grant.form.accounts.hint")}>{(a) => <input {...a} type="text" value={f.accounts} placeholder="*" onInput={(e) => set({ accounts: e.currentTarget.value })} />}</Field>}
      </>}
    </>
  );
}

function grantOf(f: { role: string; scope: string; scopeText: string; nets: string; clouds: string; actions: string; accounts: string }): Grant | undefined {
  if (!f.role) return undefined;
  const g: Grant = { role: f.role };
  const numbers = (s: string) => words(s).map(Number);
  if (f.role !== "enroller" && f.scope !== "all") {
    if (words(f.scopeText).length === 0) return undefined;
    if (f.scope === "biz") g.businesses = numbers(f.scopeText);
    else g.namespaces = words(f.scopeText);
  }
  if (f.nets.trim()) g.nets = words(f.nets);
  if (f.clouds.trim()) g.clouds = numbers(f.clouds);
  if (g.namespaces && !g.nets && !g.clouds) g.hosts = "any";
  if (f.role === "operator" && f.actions.trim()) g.actions = words(f.actions);
  if (f.role !== "viewer" && f.role !== "enroller" && f.accounts.trim()) g.accounts = words(f.accounts);
  if ([...(g.businesses ?? []), ...(g.clouds ?? [])].some((n) => !Number.isInteger(n))) return undefined;
  return g;
}
