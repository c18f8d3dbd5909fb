import { dictionary } from "./dictionary.ts";

export const overview = dictionary({
});
