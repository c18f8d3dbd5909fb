// Bundles the console into internal/console/dist, from which the Go program embeds it.
import { build } from "esbuild";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { gzipSync } from "node:zlib";

const out = new URL("../internal/console/dist/", import.meta.url).pathname;
const firstLoadLimit = 80 * 1024; // compressed JavaScript before anything is on screen

// Remove what an earlier build has made.
mkdirSync(out, { recursive: true });
for (const file of readdirSync(out)) {
  if (!file.startsWith(".")) rmSync(out + file, { recursive: true });
}

const result = await build({
  entryPoints: { app: "src/main.tsx", style: "src/styles/all.css" },
  outdir: out + "assets",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  metafile: true,
  legalComments: "none",
  logLevel: "warning",
});

// Find the entries, and everything that the first load needs.
const outputs = Object.entries(result.metafile.outputs);
const entry = (source) => outputs.find(([, o]) => o.entryPoint === source)[0];
const needed = new Set();
function need(file) {
  if (needed.has(file)) return;
  needed.add(file);
  for (const i of result.metafile.outputs[file].imports) if (i.kind === "import-statement") need(i.path);
}
need(entry("src/main.tsx"));

const size = [...needed].reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
console.log(`console: first load ${(size / 1024).toFixed(1)} KB of compressed JavaScript in ${needed.size} files, of at most ${firstLoadLimit / 1024} KB`);
if (size > firstLoadLimit) {
  console.error("console: the first load is too large: move code behind import()");
  process.exit(1);
}

// Write the page.
const asset = (file) => `/console/assets/${basename(file)}`;
const preload = [...needed].map((file) => `  <link rel="modulepreload" href="${asset(file)}">`).join("\n");
writeFileSync(out + "index.html", `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Gozzard</title>
  <link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="${asset(entry("src/styles/all.css"))}">
${preload}
  <script type="module" src="${asset(entry("src/main.tsx"))}"></script>
</head>
<body>
  <div id="app"></div>
  <noscript>The console of Gozzard needs JavaScript. 牧鹅人控制台需要启用 JavaScript。</noscript>
</body>
</html>
`);
writeFileSync(out + "assets/icon.svg", readFileSync("src/icon.svg"));
