//go:build linux

package main

// login signs in as the page does. Its arguments are name and password.
const login = `fetch("/api/v1/session", {method: "POST", headers: {"Content-Type": "application/json"},
  body: JSON.stringify({user: %q, password: %q})}).then((r) => r.status)`

// observer notes in every page when its first row and its map are drawn, before any code of the page runs.
const observer = `
window.bench = {};
addEventListener("DOMContentLoaded", () => {
  const look = () => {
    if (!bench.table && document.querySelector("main [aria-rowindex='2']")) requestAnimationFrame(() => { bench.table = performance.now(); });
    const map = document.querySelector(".heat canvas");
    if (!bench.map && map && map.height > 30) requestAnimationFrame(() => { bench.map = performance.now(); });
    if (!bench.table && !bench.map) setTimeout(look, 5);
  };
  look();
});`

// beginFrames brings an element into view and notes the time of every frame from then on. It returns where the middle of
// the element is, and how far it is scrolled. Its argument is the selector of the element.
const beginFrames = `(() => {
  const box = document.querySelector(%q);
  box.scrollIntoView({block: "center"});
  const times = bench.frames = [];
  const step = (now) => { times.push(now); if (bench.frames === times) requestAnimationFrame(step); };
  requestAnimationFrame(step);
  const r = box.getBoundingClientRect();
  return {X: r.x + r.width / 2, Y: r.y + r.height / 2, Top: box.scrollTop};
})()`

// endFrames returns the times between the frames since beginFrames, and how far the element is scrolled.
const endFrames = `(() => {
  const at = bench.frames, times = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
  bench.frames = null;
  return {P50: times[times.length >> 1], P95: times[Math.floor(times.length * 0.95)], Count: times.length, Top: document.querySelector(%q).scrollTop};
})()`

// filter types a text into the box and measures the time until the number of rows is another one and is drawn. Its argument
// is the text.
const filter = `new Promise((resolve, reject) => {
  const grid = document.querySelector("main [aria-rowcount]"), box = document.querySelector("main input[type=search]");
  const before = grid.getAttribute("aria-rowcount"), began = performance.now();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, %q);
  box.dispatchEvent(new Event("input", {bubbles: true}));
  const look = () => {
    if (document.querySelector("main [aria-rowcount]")?.getAttribute("aria-rowcount") !== before) return requestAnimationFrame(() => resolve(performance.now() - began));
    if (performance.now() - began > 20000) return reject(new Error("the table does not change"));
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})`
