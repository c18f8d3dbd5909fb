import type { Event as FleetEvent } from "../api-types.ts";
import { badEvents } from "../ui/events.tsx";
import { exact, now } from "../ui/format.ts";
import { t } from "../words.ts";

const minutes = 60;

/** How many events there were in each minute of the last hour; the part about failures is marked. */
export function EventStrip({ events, cut }: { events: FleetEvent[]; cut: boolean }) {
  const end = Math.ceil(now.value / 60_000);
  const all = new Array<number>(minutes).fill(0), bad = new Array<number>(minutes).fill(0);
  for (const e of events) {
    const i = minutes - (end - Math.floor(Date.parse(e.at ?? "") / 60_000));
    if (!(i >= 0 && i < minutes)) continue;
    all[i]++;
    if (badEvents.has(e.kind)) bad[i]++;
  }
  const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
  const top = Math.max(4, ...all);
  const height = (n: number) => (n ? Math.max(2, Math.round((32 * n) / top)) : 0);

  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${minutes * 5} 32`} role="img" aria-label={t("overview.hourLabel", { n: sum(all), bad: sum(bad) })} preserveAspectRatio="none">
        {all.map((n, i) => n > 0 && (
          <g key={i}>
            <title>{`${exact((end - minutes + i) * 60_000)}: ${n}`}</title>
            <rect x={i * 5} y={32 - height(n)} width={4} height={height(n)} class="strip-all" />
            {bad[i] > 0 && <rect x={i * 5} y={32 - height(bad[i])} width={4} height={height(bad[i])} class="strip-bad" />}
          </g>
        ))}
      </svg>
      <figcaption class="hint">{cut ? t("overview.hourCut", { n: events.length }) : t("overview.hour")}</figcaption>
    </figure>
  );
}
