export interface Settings {
  readonly maxChildren: number;
}

export const DEFAULTS: Settings = { maxChildren: 8 };
