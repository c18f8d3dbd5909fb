import { dictionary } from "./dictionary.ts";

export const people = dictionary({
});
