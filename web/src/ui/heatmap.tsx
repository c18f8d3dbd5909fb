// Draws the map of the fleet on a canvas.
import { useEffect, useRef, useState } from "preact/hooks";
import { wholeName } from "../live/names.ts";
import { beat, table } from "../live/stream.ts";
import { arrange, cellAt, heightOf, paint, type Grouping, type Heat } from "../live/heat.ts";
import { go, href } from "../router.ts";
import { theme } from "../theme.ts";
import { plain } from "./format.ts";
import { t, tOf } from "../words.ts";

const arrangeEvery = 5000; // cells keep their places for a while, or the map would flicker

export function HeatMap({ by }: { by: Grouping }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const heat = useRef<Heat | null>(null);
  const drawn = useRef({ shape: -1, at: 0, by: "" as string, width: 0, epoch: "" });
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  const [width, setWidth] = useState(0);

  useEffect(() => {
    const watch = new ResizeObserver(([e]) => setWidth(Math.floor(e.contentRect.width)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const tick = beat.value;
  const fleet = table.value;
  useEffect(() => {
    if (!fleet || !width || document.hidden) return;
    const d = drawn.current, now = Date.now();
    const moved = d.by !== by || d.width !== width || d.epoch !== fleet.epoch;
    if (moved || (d.shape !== fleet.shape && now - d.at > 1000) || now - d.at > arrangeEvery) {
      heat.current = arrange(fleet, by, width, fleet.count > 50_000 ? 640 : 320);
      drawn.current = { shape: fleet.shape, at: now, by, width, epoch: fleet.epoch };
    }
    draw(canvas.current!, heat.current!);
  }, [tick, width, by, theme.value, fleet]);

  const look = (e: MouseEvent) => {
    const found = heat.current && cellAt(heat.current, e.offsetX, e.offsetY);
    setTip(found && fleet ? { x: e.offsetX, y: e.offsetY, text: describe(found.cell) } : null);
  };
  const open = (e: MouseEvent) => {
    const found = heat.current && cellAt(heat.current, e.offsetX, e.offsetY);
    if (!found || !fleet) return;
    if (heat.current!.byHost) go(href(`/hosts/${encodeURIComponent(fleet.hosts.agent[found.cell])}`));
    else go(href(`/process/${encodeURIComponent(fleet.names.space[fleet.name[found.cell]])}/${encodeURIComponent(fleet.names.name[fleet.name[found.cell]])}`));
  };

  return (
    <div class="heat" ref={box}>
      <canvas ref={canvas} role="img" aria-label={t("heat.label")} onMouseMove={look} onMouseLeave={() => setTip(null)} onClick={open} />
      {tip && <div class="heat-tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, width - 160)}px`, top: `${tip.y + 12}px` }}>{tip.text}</div>}
    </div>
  );

  function describe(cell: number): string {
    const f = fleet!;
    if (heat.current!.byHost) return `${f.hosts.cloud[cell]}:${f.hosts.ip[cell]}`;
    if (!f.has(cell)) return "";
    const n = f.name[cell], h = f.host[cell];
    return `${plain(wholeName(f, f.names.space[n], f.names.name[n], f.place[cell]))} · ${f.hosts.ip[h]} · ${tOf("state.", f.states[f.state[cell]])}`;
  }
}

function draw(canvas: HTMLCanvasElement, heat: Heat): void {
  const fleet = table.value!;
  const height = Math.max(24, heightOf(heat));
  if (canvas.width !== heat.width || canvas.height !== height) {
    canvas.width = heat.width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(heat.width, height);
  const style = getComputedStyle(document.documentElement);
  const colour = (state: string) => toPixel(style.getPropertyValue(`--s-${state}`));
  paint(fleet, heat, new Uint32Array(image.data.buffer), Uint32Array.from(fleet.states, colour), colour("unknown"));
  context.putImageData(image, 0, 0);
}

/** A colour such as #2e8b57 as a pixel of an image (little endian: ABGR). */
function toPixel(css: string): number {
  const n = parseInt(css.trim().slice(1), 16);
  return ((255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
