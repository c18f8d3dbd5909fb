import { dictionary } from "./dictionary.ts";

// Words of definitions: shown, registered and edited.
export const definition = dictionary({
  "definition.none": { en: "The server has no definition of this process: its agent found it or another server registered it", zh: "服务器没有此进程的定义，可能由 agent 发现或由其他服务器注册" },
  "definition.variant": { en: "{n} different definitions; show that of", zh: "共有 {n} 种不同的定义，当前显示" },
  "definition.form": { en: "Form", zh: "显示方式" },
  "definition.fields": { en: "Fields", zh: "字段" },
  "definition.registered": { en: "Registered", zh: "注册于" },
  "definition.changed": { en: "last changed", zh: "最近改动" },
  "definition.default": { en: "default", zh: "默认值" },
  "definition.history": { en: "History", zh: "历史版本" },
  "definition.noHistory": { en: "No change of this definition is recorded", zh: "没有此定义的改动记录" },
  "definition.from": { en: "Compare", zh: "比较" },
  "definition.to": { en: "with", zh: "与" },
  "definition.equal": { en: "They are equal", zh: "内容相同" },
});
