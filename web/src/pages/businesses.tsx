import { t } from "../words.ts";

export default function Businesses() {
  return <p>{t("loading")}</p>;
}
