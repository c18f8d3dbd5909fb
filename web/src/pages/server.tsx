import { t } from "../words.ts";

export default function Server() {
  return <p>{t("loading")}</p>;
}
