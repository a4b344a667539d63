export const base: string = import.meta.env.VITE_API_URL;
