import { t } from "../words.ts";

export default function Processes() {
  return <p>{t("loading")}</p>;
}
