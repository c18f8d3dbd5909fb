// An act of the audit in words, with the recorded one on hover.
import { plain } from "../ui/format.ts";
import { t, tOf } from "../words.ts";
import { actParts } from "./audit-model.ts";

export function Act({ of }: { of: string }) {
  const { key, rest } = actParts(of);
  const more = key === "operate" ? rest.split(",").map((a) => tOf("action.", a)).join(t("mark.list")) : rest;
  return <bdi class="text" title={plain(of)}>{key && tOf("acts.", key)} {more && <span class={key ? "dim" : ""}>{plain(more)}</span>}</bdi>;
}
