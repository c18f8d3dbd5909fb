import { dictionary } from "./dictionary.ts";

export const businesses = dictionary({
});
