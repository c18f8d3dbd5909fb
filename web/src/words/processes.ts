import { dictionary } from "./dictionary.ts";

export const processes = dictionary({
});
