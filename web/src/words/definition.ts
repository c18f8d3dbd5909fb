import { dictionary } from "./dictionary.ts";

export const definition = dictionary({
});
