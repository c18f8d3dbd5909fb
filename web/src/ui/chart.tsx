// A chart over time. The library is loaded with the first chart; a table has the same numbers for people that do not see it.
import type uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { locale, t } from "../words.ts";

export interface Series { label: string; values: (number | null)[] }

/** Series with the same times, in Unix seconds. */
export interface ChartData { times: number[]; series: Series[] }

/** Puts values of several sources on one axis of time: a time that a source does not have is null there. */
export function alignSeries(parts: { label: string; times: number[]; values: (number | null)[] }[]): ChartData {
  const times = [...new Set(parts.flatMap((p) => p.times))].sort((a, b) => a - b);
  const index = new Map(times.map((time, i) => [time, i]));
  return {
    times,
    series: parts.map((p) => {
      const values: (number | null)[] = new Array(times.length).fill(null);
      p.times.forEach((time, i) => { values[index.get(time)!] = p.values[i] ?? null; });
      return { label: p.label, values };
    }),
  };
}

const colours = ["--accent", "--s-starting", "--s-unhealthy", "--s-failed", "--s-backing_off", "--s-scheduled"];
const dashes = [[], [6, 3], [2, 3], [10, 4, 2, 4], [1, 2], [12, 3]];

/** The times of an axis in the viewer's language: the clock for a day, dates above. */
function timeText(seconds: number, span: number): string {
  const o: Intl.DateTimeFormatOptions = span > 2 * 86400 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hour12: false };
  return new Date(seconds * 1000).toLocaleString(locale.value, o);
}

const binary = Array.from({ length: 45 }, (_, i) => 2 ** i); // steps of an axis with bytes

export interface ChartProps { title: string; data: ChartData; format: (n: number) => string; from: number; to: number; bytes?: boolean; empty: string }

export function Chart({ title, data, format, from, to, bytes, empty }: ChartProps) {
  const range = useRef<[number, number]>([from, to]);
  range.current = [from, to];
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [theme, setTheme] = useState(0);
  const newest = useRef(data); // the library may come later than the data
  newest.current = data;

  // Colours are those of the page.
  useEffect(() => {
    const watch = new MutationObserver(() => setTheme((n) => n + 1));
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => watch.disconnect();
  }, []);

  const shape = data.series.map((s) => s.label).join("\n");
  useEffect(() => {
    let gone = false;
    let sizes: ResizeObserver | undefined;
    void import("uplot").then(({ default: Plot }) => {
      if (gone || !box.current) return;
      const css = getComputedStyle(document.documentElement);
      const colour = (name: string) => css.getPropertyValue(name).trim();
      const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
      plot.current = new Plot({
        width: box.current.clientWidth, height: 180,
        legend: { show: data.series.length > 1 },
        cursor: { points: { size: 6 } },
        scales: { x: { time: true, range: () => range.current }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [{ ...axis, size: 32, values: (u, list) => list.map((at) => timeText(at, u.scales.x.max! - u.scales.x.min!)) }, { ...axis, size: 72, ...(bytes ? { incrs: binary } : {}), values: (_u, list) => list.map(format) }],
        series: [{ label: t("chart.time"), value: (_u: uPlot, v: number | null) => (v === null ? "-" : new Date(v * 1000).toLocaleString(locale.value)) }, ...data.series.map((s, i) => ({ label: s.label, stroke: colour(colours[i % colours.length]), dash: dashes[i % dashes.length], width: 1.5, points: { show: (u: uPlot) => u.data[0].length < 3 }, value: (_u: uPlot, v: number | null) => (v === null ? "-" : format(v)) }))],
      }, plotted(newest.current), box.current);
      sizes = new ResizeObserver(() => { if (box.current) plot.current?.setSize({ width: box.current.clientWidth, height: 180 }); });
      sizes.observe(box.current);
    });
    return () => { gone = true; sizes?.disconnect(); plot.current?.destroy(); plot.current = undefined; };
  }, [shape, theme, locale.value]);
  useEffect(() => { plot.current?.setData(plotted(data)); }, [data, to]);

  const known = data.series.some((s) => s.values.some((v) => v !== null));
  return (
    <figure class="card chart">
      <figcaption><h2>{title}</h2></figcaption>
      <div class="chart-area">
        <div ref={box} class="chart-box" aria-hidden="true" />
        {!known && <p class="chart-empty" role="status">{empty}</p>}
      </div>
      <details class="chart-table"><summary>{t("chart.numbers", { title })}</summary><Numbers data={data} format={format} /></details>
    </figure>
  );
}

/** Data in the form of the library. */
const plotted = (data: ChartData) => [data.times, ...data.series.map((s) => s.values)] as uPlot.AlignedData;

/** The least, the mean, the most and the last value of every series. */
function Numbers({ data, format }: { data: ChartData; format: (n: number) => string }) {
  return (
    <table>
      <thead><tr><th>{t("chart.series")}</th><th class="right">{t("chart.least")}</th><th class="right">{t("chart.mean")}</th><th class="right">{t("chart.most")}</th><th class="right">{t("chart.last")}</th></tr></thead>
      <tbody>
        {data.series.map((s) => {
          const known = s.values.filter((v): v is number => v !== null);
          const show = (n: number) => (known.length ? format(n) : "-");
          return (
            <tr key={s.label}>
              <th scope="row">{s.label}</th>
              <td class="right">{show(known.reduce((a, b) => Math.min(a, b), Infinity))}</td>
              <td class="right">{show(known.reduce((a, b) => a + b, 0) / known.length)}</td>
              <td class="right">{show(known.reduce((a, b) => Math.max(a, b), -Infinity))}</td>
              <td class="right">{show(known[known.length - 1])}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
