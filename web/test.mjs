// Runs the tests of test/*.ts in Node, bundled as the page is.
import { build } from "esbuild";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

const out = mkdtempSync(join(tmpdir(), "gozzard-console-"));
const files = readdirSync("test").filter((f) => f.endsWith(".test.ts"));
await build({
  entryPoints: files.map((f) => `test/${f}`), outdir: out, bundle: true, format: "esm", platform: "node", target: "node20",
  outExtension: { ".js": ".mjs" }, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning",
});
const run = spawnSync(process.execPath, ["--test", ...files.map((f) => join(out, f.replace(/\.ts$/, ".mjs")))], { stdio: "inherit" });
rmSync(out, { recursive: true });
process.exit(run.status ?? 1);
