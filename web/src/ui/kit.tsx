// The small parts that pages are made of.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Failure } from "../api.ts";
import { t, tOf } from "../words.ts";
import { ago, exact, plain } from "./format.ts";

type Children = { children?: ComponentChildren };

/** The sign of a state: a shape and a word, so that colour is never the only sign. */
export function State({ of, bare }: { of: string; bare?: boolean }) {
  return (
    <span class={`state state-${of}`}>
      <span class="state-shape" aria-hidden="true" />
      {bare ? <span class="unseen">{tOf("state.", of)}</span> : tOf("state.", of)}
    </span>
  );
}

/** A moment, as age with the exact time on hover. */
export function Moment({ at }: { at: string | number | null | undefined }) {
  if (at === null || at === undefined || at === "" || at === 0) return <span class="dim">-</span>;
  const ms = typeof at === "number" ? at * 1000 : Date.parse(at);
  return <time dateTime={new Date(ms).toISOString()} title={exact(ms)}>{ago(ms)}</time>;
}

/** A text from outside: it never breaks the layout, and its whole length is shown on hover. */
export function Text({ of, class: name }: { of: string; class?: string }) {
  const text = plain(of);
  return <bdi class={`text ${name ?? ""}`} title={text.length > 40 ? text : undefined}>{text}</bdi>;
}

export function Button({ children, kind, ...rest }: Children & { kind?: "main" | "danger" | "quiet" } & Omit<ButtonHTMLAttributes<HTMLButtonElement>, "kind">) {
  return <button type="button" {...rest} class={`button ${kind ? `button-${kind}` : ""} ${(rest.class as string) ?? ""}`}>{children}</button>;
}

/** A text that can be copied, such as a command. */
export function CopyButton({ text, label }: { text: string | (() => string); label?: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setSaid(t("copied"));
    } catch {
      setSaid(t("copyFailed"));
    }
    setTimeout(() => setSaid(""), 3000);
  };
  return (
    <span class="copy">
      <Button kind="quiet" onClick={() => { void copy(); }}>{label ?? t("copy")}</Button>
      <span role="status" class="copy-said">{said}</span>
    </span>
  );
}

export function Command({ text }: { text: string }) {
  return <div class="command"><code tabIndex={0}>{text}</code><CopyButton text={text} /></div>;
}

/** What is shown where there is nothing yet: it says what to do first. */
export function Empty({ title, page, children }: Children & { title: string; page?: boolean }) {
  return <div class="empty">{page ? <h1 class="empty-title">{title}</h1> : <p class="empty-title">{title}</p>}{children}</div>;
}

/** What went wrong, in the words of the server. */
export function Problem({ of, retry, title }: { of: Failure; retry?: () => void; title?: string }) {
  return (
    <div class="problem" role="alert">
      <p><strong>{title ?? t("error.title")}</strong> {plain(of.message)} {of.request && of.status >= 500 && <small class="dim">{t("error.request", { id: of.request })}</small>}</p>
      {of.faults.length > 0 && <ul>{of.faults.map((f) => <li key={f.path}><code>{f.path}</code> {plain(f.text)}</li>)}</ul>}
      {retry && <Button onClick={retry}>{t("retry")}</Button>}
    </div>
  );
}

/** A field of a form with its label, hint and fault. */
export function Field({ label, hint, fault, children }: { label: string; hint?: string; fault?: string; children: (a: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren }) {
  const id = useId();
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return (
    <div class={`field ${fault ? "field-faulty" : ""}`}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": fault ? true : undefined })}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {fault && <p class="fault" id={`${id}-fault`} role="alert">{fault}</p>}
    </div>
  );
}

/** A dialog. Escape and the button close it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children, wide }: Children & { title: string; onClose: () => void; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => { before?.focus?.(); };
  }, []);
  return (
    <dialog ref={ref} class={`dialog ${wide ? "dialog-wide" : ""}`} aria-labelledby={id}
      onCancel={(e) => { e.preventDefault(); onClose(); }}
      onMouseDown={(e) => { if (e.target === ref.current) onClose(); }}>
      <div class="dialog-body">
        <header class="dialog-head"><h2 id={id}>{title}</h2><Button kind="quiet" aria-label={t("close")} onClick={onClose}>✕</Button></header>
        {children}
      </div>
    </dialog>
  );
}

/** Tabs that are links, so that the address holds the view. */
export function Tabs({ items, at, label }: { items: { key: string; label: string; href: string }[]; at: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {items.map((i) => <a key={i.key} href={i.href} aria-current={i.key === at ? "page" : undefined}>{i.label}</a>)}
    </nav>
  );
}

/** Filters that a phone shows on request, so that they do not fill its screen. */
export function Fold({ active, children }: Children & { active: boolean }) {
  const [open] = useState(() => innerWidth >= 600 || active);
  return <details class="fold" open={open}><summary>{t("tasks.filters")}</summary>{children}</details>;
}

export function PageHead({ title, children }: Children & { title: ComponentChildren }) {
  return <header class="page-head"><h1>{title}</h1><div class="page-actions">{children}</div></header>;
}
