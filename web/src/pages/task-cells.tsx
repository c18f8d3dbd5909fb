// A cell for each process of a task, drawn on a canvas. Colour is not the only sign: done is full, failed has a cross,
// running is a frame with a dot, waiting is a thin frame.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Attempt } from "../api-types.ts";
import { wholeName } from "../live/names.ts";
import { table } from "../live/stream.ts";
import { theme } from "../theme.ts";
import { plain } from "../ui/format.ts";
import { t, tOf } from "../words.ts";
import { cellAt, countResults, gridOf, hostText, resultOf, type Grid, type Result } from "./task-model.ts";

const height = 320;

const colours: Record<Result, string> = { done: "--s-running", noted: "--s-completed", failed: "--s-crash_loop", running: "--s-starting", waiting: "--s-stopped" };

export function Cells({ attempts, onPick }: { attempts: readonly Attempt[]; onPick: (a: Attempt) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useRef<Grid>({ size: 2, columns: 1, rows: 0 });
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState("");

  useEffect(() => {
    const watch = new ResizeObserver(([e]) => setWidth(Math.floor(e.contentRect.width)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    if (!width) return;
    grid.current = gridOf(attempts.length, width, height);
    draw(canvas.current!, grid.current, attempts, width);
  }, [attempts, width, theme.value]);

  useEffect(() => { // the system changes between light and dark
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = () => { if (width) draw(canvas.current!, grid.current, attempts, width); };
    dark.addEventListener("change", again);
    return () => dark.removeEventListener("change", again);
  }, [attempts, width]);

  const under = (e: MouseEvent) => attempts[cellAt(grid.current, attempts.length, e.offsetX, e.offsetY)];
  const n = countResults(attempts);
  return (
    <div class="task-cells" ref={box}>
      <canvas ref={canvas} role="img" aria-label={t("task.cellsLabel", { n: attempts.length, done: n.done + n.noted, failed: n.failed, running: n.running, waiting: n.waiting })}
        onMouseMove={(e) => { const a = under(e); setTip(a ? describe(a) : ""); }}
        onMouseLeave={() => setTip("")}
        onClick={(e) => { const a = under(e); if (a) onPick(a); }} />
      <p class="task-tip dim one-line">{tip || t("task.cells")}</p>
    </div>
  );
}

function describe(a: Attempt): string {
  return plain(`${hostText(a.host)}  ${wholeName(table.value, a.namespace, a.name)} · ${tOf("result.", resultOf(a))} ${a.message ?? ""}`.slice(0, 400));
}

function draw(canvas: HTMLCanvasElement, g: Grid, attempts: readonly Attempt[], width: number): void {
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = Math.max(1, g.rows * g.size * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${g.rows * g.size}px`;
  const c = canvas.getContext("2d");
  if (!c) return;
  c.scale(scale, scale);

  const style = getComputedStyle(document.documentElement);
  const colour = Object.fromEntries(Object.entries(colours).map(([r, v]) => [r, style.getPropertyValue(v).trim()])) as Record<Result, string>;
  const back = style.getPropertyValue("--card").trim();
  const gap = g.size >= 4 ? 1 : 0;
  attempts.forEach((a, i) => {
    const x = (i % g.columns) * g.size, y = Math.floor(i / g.columns) * g.size;
    cell(c, resultOf(a), colour, back, x, y, g.size - gap);
  });
}

/** Draws one cell. Below 6 pixels there is no room for a pattern: then failed cells are full and others leave a gap. */
function cell(c: CanvasRenderingContext2D, r: Result, colour: Record<Result, string>, back: string, x: number, y: number, size: number): void {
  c.fillStyle = c.strokeStyle = colour[r];
  if (size < 5) {
    if (r === "waiting") c.fillRect(x, y, Math.max(1, size / 2), Math.max(1, size / 2));
    else c.fillRect(x, y, size, size);
    return;
  }
  switch (r) {
    case "failed":
      c.fillRect(x, y, size, size);
      c.strokeStyle = back;
      c.lineWidth = size > 9 ? 2 : 1;
      c.beginPath();
      c.moveTo(x + 2, y + 2); c.lineTo(x + size - 2, y + size - 2);
      c.moveTo(x + size - 2, y + 2); c.lineTo(x + 2, y + size - 2);
      c.stroke();
      break;
    case "running":
      c.lineWidth = 1.5;
      c.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
      c.fillRect(x + size / 2 - 1.5, y + size / 2 - 1.5, 3, 3);
      break;
    case "waiting":
      c.lineWidth = 1;
      c.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      break;
    case "noted":
      c.fillRect(x, y + size / 3, size, size / 3);
      break;
    case "done":
      c.fillRect(x, y, size, size);
  }
}
