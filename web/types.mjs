// Writes src/api-types.ts from docs/openapi.json: the page is checked against the answers that the server documents.
import { readFileSync, writeFileSync } from "node:fs";

const openapi = JSON.parse(readFileSync(new URL("../docs/openapi.json", import.meta.url), "utf8"));

function typeOf(schema) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  for (const of of ["oneOf", "anyOf", "allOf"]) {
    if (schema[of]) return schema[of].map(typeOf).join(of === "allOf" ? " & " : " | ");
  }

  const types = [].concat(schema.type ?? []);
  const names = types.map((type) => {
    switch (type) {
      case "string": return "string";
      case "integer":
      case "number": return "number";
      case "boolean": return "boolean";
      case "null": return "null";
      case "array": return `Array<${typeOf(schema.items)}>`;
      case "object": return objectOf(schema);
      default: return "unknown";
    }
  });
  return names.length ? names.join(" | ") : "unknown";
}

function objectOf(schema) {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, s]) => `  ${JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${typeOf(s).replaceAll("\n", "\n  ")};`);
  if (fields.length) return `{\n${fields.join("\n")}\n}`;
  return `Record<string, ${typeOf(schema.additionalProperties)}>`;
}

const schemas = Object.entries(openapi.components.schemas);
const text = schemas.map(([name, s]) => `export type ${name} = ${typeOf(s)};\n`).join("\n");
writeFileSync(new URL("src/api-types.ts", import.meta.url), `// Made by types.mjs from docs/openapi.json.\n\n${text}`);
