// How the machine of a host is: its clock beside the server's, its load, its memory.
import type { HostInfo } from "../api-types.ts";
import { age, bytes } from "../ui/format.ts";
import { locale, t } from "../words.ts";

const mostSkew = 5; // seconds; from here on the page warns, as the command line does
const high = 1; // load of a processor, from which on programs wait

/** The difference of a clock in words; "" when it is small or not known. */
export function skewText(skew: number | null | undefined): string {
  if (skew === null || skew === undefined || Math.abs(skew) < mostSkew) return "";
  return t(skew > 0 ? "clock.ahead" : "clock.behind", { age: age(Math.abs(skew)) });
}

/** The load of a processor, with two digits. */
export function loadText(load: number): string {
  return load.toLocaleString(locale.value, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** The cell of a table of hosts. */
export function Load({ of }: { of: number | null | undefined }) {
  if (of === null || of === undefined) return null;
  return <span class={of > high ? "load-high" : ""} title={t("hosts.load.title")}>{loadText(of)}</span>;
}

/** A sign at hosts whose clock is wrong. */
export function SkewMark({ host }: { host: HostInfo }) {
  const text = skewText(host.clock_skew);
  return text ? <span class="mark mark-warn" title={t("host.clock.warn")}>{text}</span> : null;
}

/** The rows of the facts of a host. Of a host that is offline, nothing is known. */
export function Vitals({ host }: { host: HostInfo }) {
  const none = <span class="hint">{t("host.unknown.value")}</span>;
  const known = (n: number | null | undefined): n is number => n !== null && n !== undefined;
  const skew = skewText(host.clock_skew);
  return (
    <>
      <dt>{t("host.clock")}</dt>
      <dd>{skew ? <><SkewMark host={host} /><br /><span class="hint">{t("host.clock.warn")}</span></> : known(host.clock_skew) ? t("host.clock.good") : none}</dd>
      <dt>{t("host.load")}</dt>
      <dd>{known(host.load) ? t("host.load.text", { load: loadText(host.load) }) : none}</dd>
      <dt>{t("host.memory.free")}</dt>
      <dd>{known(host.mem_free) ? bytes(host.mem_free) : none}</dd>
    </>
  );
}
