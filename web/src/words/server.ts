import { dictionary } from "./dictionary.ts";

export const server = dictionary({
});
