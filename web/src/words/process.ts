import { dictionary } from "./dictionary.ts";

export const process = dictionary({
});
