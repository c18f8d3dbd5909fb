// The name of a process as people know it, with the recorded one on hover.
import { wholeName } from "../live/names.ts";
import { table } from "../live/stream.ts";
import { plain } from "./format.ts";

export function ProcessName({ space, name, place = 0, class: more = "" }: { space: string; name: string; place?: number; class?: string }) {
  const raw = `${space}/${name}`, shown = wholeName(table.value, space, name, place);
  return <bdi class={`text ${more}`} title={shown === raw && raw.length <= 40 ? undefined : plain(raw)}>{plain(shown)}</bdi>;
}
