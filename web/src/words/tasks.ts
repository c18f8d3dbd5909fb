import { dictionary } from "./dictionary.ts";

export const tasks = dictionary({
});
