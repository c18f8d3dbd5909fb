/** A dictionary: every key has both languages. */
export function dictionary<T extends Record<string, { en: string; zh: string }>>(words: T): T {
  return words;
}
