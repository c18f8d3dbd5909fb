import { t } from "../words.ts";

export default function Person() {
  return <p>{t("loading")}</p>;
}
