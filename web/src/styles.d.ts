/** Styles are imported for their effect, and put beside the script by the build. */
declare module '*.css';
