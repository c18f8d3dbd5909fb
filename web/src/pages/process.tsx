import { t } from "../words.ts";

export default function Process() {
  return <p>{t("loading")}</p>;
}
