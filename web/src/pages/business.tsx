import { t } from "../words.ts";

export default function Business() {
  return <p>{t("loading")}</p>;
}
