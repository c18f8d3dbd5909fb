import { dictionary } from "./dictionary.ts";

export const hosts = dictionary({
});
