import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.tsx";
import { onKey } from "./keys.ts";
import { followLinks } from "./router.ts";
import { showTheme } from "./theme.ts";
import { language } from "./words.ts";

effect(() => { document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en"; });
showTheme();
followLinks();
addEventListener("keydown", onKey);
render(<App />, document.getElementById("app")!);
