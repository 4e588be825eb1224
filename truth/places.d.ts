export interface Place {
  file: string;
  address: string;
  country: string;
  class: string;
  operator: string;
  url: string;
  date: string;
}

export function isHeldOut(operator: string): boolean;
export function readPlaces(directory?: string): Place[];
